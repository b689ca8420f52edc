// A profiler plugin for NCCL that tells the host agent which communicators, connections and collectives there
// are. It only watches: every call returns ncclSuccess, nothing blocks, nothing is allocated but one small
// context per communicator, and what the agent does not take at once is dropped and counted.
//
// Build:  cc -std=c11 -O2 -fPIC -shared -pthread -o libnccl-profiler-leveller.so plugin.c
// Use:    NCCL_PROFILER_PLUGIN=/path/to/libnccl-profiler-leveller.so (LEVELLER_NCCL_SOCKET=/agent's/socket)
//
// Versions 4 (NCCL 2.27) and 5 (NCCL 2.28) of the interface. Their declarations are repeated here as far as
// they are used; the two event descriptors differ only in the width of their type, up to the members read
// below. Connections are told of by the network events, for which NCCL has to be built with its network
// profiling on. The datagrams' layout is read by hostagent/nccl/messages.py.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// ---- NCCL's interface ----

typedef int Result;  // ncclResult_t; 0 is ncclSuccess, 2 ncclSystemError
typedef void (*Logger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

enum {
  EVENT_COLL = 1 << 1,
  EVENT_P2P = 1 << 2,
  EVENT_PROXY_OP = 1 << 3,
  EVENT_PROXY_STEP = 1 << 4,
  EVENT_NET = 1 << 7
};
enum { NET_IB = 1, NET_SOCKET = 2 };  // upper half of a network event's id; its version is the lower

typedef struct {
  union {
    uint8_t v4;
    uint64_t v5;
  } type;
  void *parent;
  int rank;
  union {
    struct {
      uint64_t sequence;
      const char *function;
      const void *send;
      void *receive;
      size_t count;
      int root;
      const char *datatype;
    } coll;
    struct {
      const char *function;
      void *buffer;
      const char *datatype;
      size_t count;
    } p2p;
    struct {
      pid_t pid;
      uint8_t channel;
      int peer;
      int steps;
      int chunk;
      int is_send;
    } proxy_op;
    struct {
      int64_t id;
      const void *data;
    } net;
  };
} Event;

typedef struct {
  uint8_t type;
  union {
    struct {
      int device;
      uint64_t work_request;
      int opcode;
      int number;
    } qp;
    struct {
      int descriptor;
    } socket;
  };
} NetEvent;

typedef Result (*Init4)(void **, int *, const char *, uint64_t, int, int, int, Logger);
typedef Result (*Init5)(void **, uint64_t, int *, const char *, int, int, int, Logger);
typedef Result (*Start)(void *, void **, Event *);
typedef Result (*Stop)(void *);
typedef Result (*Record)(void *, int, void *);

typedef struct {
  const char *name;
  Init4 init;
  Start start;
  Stop stop;
  Record record;
  Stop finalize;
} Profiler4;
typedef struct {
  const char *name;
  Init5 init;
  Start start;
  Stop stop;
  Record record;
  Stop finalize;
} Profiler5;

// ---- the agent's datagrams, in the host's byte order ----

#define MAGIC 0x314e564cu  // "LVN1"

enum { TELL_COMMUNICATOR = 1, TELL_CONNECTION = 2, TELL_COLLECTIVES = 3, TELL_END = 4 };

typedef struct {
  uint32_t magic;
  uint32_t kind;
  uint64_t communicator;
  uint64_t now_ns;  // CLOCK_MONOTONIC
  uint32_t rank;
  uint32_t dropped;  // datagrams that this process could not send so far
} Header;

typedef struct {
  Header header;
  uint32_t ranks;
  uint32_t nodes;
  char name[64];
} Communicator;

typedef struct {
  Header header;
  int32_t peer;  // rank; -1 where unknown
  uint32_t is_send;
  uint32_t qp;      // local queue pair; 0: a socket
  int32_t device;   // of the queue pair, in NCCL's order
  uint32_t family;  // of the socket: 4 or 6; 0: a queue pair
  uint16_t source_port, destination_port;
  uint8_t source[16], destination[16];  // IPv4 in the first 4 bytes
} Connection;

typedef struct {
  Header header;
  uint64_t sequence, count, bytes, first_ns;
  char function[16];
} Collectives;

// ---- state ----

#define CONNECTIONS 512                // remembered per communicator; a power of two
#define AGAIN_NS UINT64_C(5000000000)  // everything is told again so often, for an agent that has restarted
#define AWAY_NS UINT64_C(1000000000)
#define COLLECTIVES_NS UINT64_C(50000000)  // collectives are told of no more often than that

typedef struct {
  uint64_t communicator;
  uint32_t rank, ranks, nodes;
  char name[64];
  struct sockaddr_un agent;
  _Atomic uint64_t told_ns;
  _Atomic uint64_t sent_ns, first_ns, count, bytes;
  _Atomic uint64_t known[CONNECTIONS];  // keys of the connections told of since told_ns; 0: free
} Context;

static _Atomic int agent = -1;
static _Atomic uint32_t dropped;
static _Atomic uint64_t away_ns;  // there was no agent: it is not looked for again before

static uint64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_agent(void) {
  int mine = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), none = -1;
  if (mine >= 0 && !atomic_compare_exchange_strong(&agent, &none, mine)) close(mine);
}

// Send a datagram; false where it could not be. While there is no agent, it is looked for once a second.
static bool tell(const Context *context, Header *header, uint32_t kind, size_t size, uint64_t now_ns) {
  if (now_ns < atomic_load(&away_ns)) {
    atomic_fetch_add(&dropped, 1);
    return false;
  }
  *header = (Header){MAGIC, kind, context->communicator, now_ns, context->rank, atomic_load(&dropped)};
  if (sendto(atomic_load(&agent), header, size, MSG_DONTWAIT | MSG_NOSIGNAL,
             (const struct sockaddr *)&context->agent, sizeof context->agent) == (ssize_t)size)
    return true;
  atomic_fetch_add(&dropped, 1);
  if (errno != EAGAIN) atomic_store(&away_ns, now_ns + AWAY_NS);
  return false;
}

static void tell_communicator(const Context *context, uint64_t now_ns) {
  Communicator message = {.ranks = context->ranks, .nodes = context->nodes};
  memcpy(message.name, context->name, sizeof message.name);
  tell(context, &message.header, TELL_COMMUNICATOR, sizeof message, now_ns);
}

// Tell everything again now and then: forget what was told.
static void refresh(Context *context, uint64_t now_ns) {
  uint64_t told_ns = atomic_load(&context->told_ns);
  if (now_ns - told_ns < AGAIN_NS || !atomic_compare_exchange_strong(&context->told_ns, &told_ns, now_ns))
    return;
  for (size_t slot = 0; slot < CONNECTIONS; slot++)
    atomic_store_explicit(&context->known[slot], 0, memory_order_relaxed);
  tell_communicator(context, now_ns);
}

// Note a connection's key; return its place, NULL where it is not new. When the table is full none is new.
static _Atomic uint64_t *note(Context *context, uint64_t key) {
  size_t slot = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
  for (size_t tries = 0; tries < CONNECTIONS; tries++, slot++) {
    _Atomic uint64_t *place = &context->known[slot & (CONNECTIONS - 1)];
    uint64_t there = atomic_load_explicit(place, memory_order_relaxed);
    if (there == 0 && atomic_compare_exchange_strong(place, &there, key)) return place;
    if (there == key) return NULL;
  }
  return NULL;
}

// ---- events ----

// Handles of proxy operations and of what is below them are no pointers: they carry the peer and the
// direction.
#define PARENT_SEND 2u

static void *to_handle(int peer, bool is_send) {
  return (void *)(((uintptr_t)(uint32_t)(peer + 1) << 8) | (is_send ? PARENT_SEND : 0u) | 1u);
}

static size_t size_of(const char *datatype) {
  if (datatype == NULL) return 1;
  if (strstr(datatype, "64")) return 8;
  if (strstr(datatype, "32")) return 4;
  return strstr(datatype, "16") ? 2 : 1;
}

static void started(Context *context, const char *function, size_t count, const char *datatype,
                    uint64_t sequence) {
  uint64_t now_ns = monotonic_ns(), none = 0, sent_ns = atomic_load(&context->sent_ns);
  refresh(context, now_ns);
  atomic_fetch_add(&context->count, 1);
  atomic_fetch_add(&context->bytes, count * size_of(datatype));
  atomic_compare_exchange_strong(&context->first_ns, &none, now_ns);
  if (now_ns - sent_ns < COLLECTIVES_NS ||
      !atomic_compare_exchange_strong(&context->sent_ns, &sent_ns, now_ns))
    return;
  Collectives message = {.sequence = sequence,
                         .count = atomic_exchange(&context->count, 0),
                         .bytes = atomic_exchange(&context->bytes, 0)};
  message.first_ns = atomic_exchange(&context->first_ns, 0);
  if (function != NULL) strncpy(message.function, function, sizeof message.function - 1);
  tell(context, &message.header, TELL_COLLECTIVES, sizeof message, now_ns);
}

static bool read_socket(int descriptor, Connection *message) {
  struct sockaddr_storage own, other;
  socklen_t own_size = sizeof own, other_size = sizeof other;
  if (getsockname(descriptor, (struct sockaddr *)&own, &own_size) ||
      getpeername(descriptor, (struct sockaddr *)&other, &other_size))
    return false;
  if (own.ss_family == AF_INET && other.ss_family == AF_INET) {
    const struct sockaddr_in *source = (const void *)&own, *destination = (const void *)&other;
    message->family = 4;
    message->source_port = ntohs(source->sin_port);
    message->destination_port = ntohs(destination->sin_port);
    memcpy(message->source, &source->sin_addr, 4);
    memcpy(message->destination, &destination->sin_addr, 4);
    return true;
  }
  if (own.ss_family == AF_INET6 && other.ss_family == AF_INET6) {
    const struct sockaddr_in6 *source = (const void *)&own, *destination = (const void *)&other;
    message->family = 6;
    message->source_port = ntohs(source->sin6_port);
    message->destination_port = ntohs(destination->sin6_port);
    memcpy(message->source, &source->sin6_addr, 16);
    memcpy(message->destination, &destination->sin6_addr, 16);
    return true;
  }
  return false;
}

static void used(Context *context, int64_t id, const NetEvent *event, uintptr_t parent) {
  Connection message = {.peer = (int32_t)(uint32_t)(parent >> 8) - 1, .is_send = (parent & PARENT_SEND) != 0};
  if (event == NULL || (id & 0xffff) != 1 || event->type != 1) return;  // other versions, other events
  uint64_t net = (uint64_t)(id >> 16) & 0xffff, key = net << 48;
  if (net == NET_IB) {
    message.qp = (uint32_t)event->qp.number;
    message.device = event->qp.device;
    key |= ((uint64_t)(uint16_t)message.device << 32) | message.qp;
  } else if (net == NET_SOCKET) {
    key |= (uint32_t)event->socket.descriptor;
  } else {
    return;
  }
  _Atomic uint64_t *place = note(context, key);
  if (place == NULL || (net == NET_SOCKET && !read_socket(event->socket.descriptor, &message))) return;
  // What did not get through is told at the connection's next use.
  if (!tell(context, &message.header, TELL_CONNECTION, sizeof message, monotonic_ns()))
    atomic_store(place, 0);
}

static Result start(Context *context, void **handle, const Event *event, uint64_t type) {
  *handle = NULL;
  switch (type) {
    case EVENT_COLL:
      started(context, event->coll.function, event->coll.count, event->coll.datatype, event->coll.sequence);
      break;
    case EVENT_P2P:
      started(context, event->p2p.function, event->p2p.count, event->p2p.datatype, 0);
      break;
    case EVENT_PROXY_OP:
      // The proxy may work for another process, whose context is no memory of ours.
      if (event->proxy_op.pid == getpid())
        *handle = to_handle(event->proxy_op.peer, event->proxy_op.is_send != 0);
      break;
    case EVENT_PROXY_STEP:
      *handle = event->parent;
      break;
    case EVENT_NET:
      if (event->parent != NULL) used(context, event->net.id, event->net.data, (uintptr_t)event->parent);
      break;
    default:
      break;
  }
  return 0;
}

static Result start4(void *context, void **handle, Event *event) {
  return start(context, handle, event, event->type.v4);
}
static Result start5(void *context, void **handle, Event *event) {
  return start(context, handle, event, event->type.v5);
}

static Result stop(void *handle) {
  (void)handle;
  return 0;
}

static Result record(void *handle, int state, void *arguments) {
  (void)handle, (void)state, (void)arguments;
  return 0;
}

static Result init(void **handle, int *mask, const char *name, uint64_t communicator, int nodes, int ranks,
                   int rank) {
  Context *context = calloc(1, sizeof *context);
  const char *path = getenv("LEVELLER_NCCL_SOCKET");
  if (context == NULL) return 2;
  open_agent();
  if (path == NULL || *path == '\0') path = "/run/leveller/nccl.sock";
  context->agent.sun_family = AF_UNIX;
  strncpy(context->agent.sun_path, path, sizeof context->agent.sun_path - 1);
  context->communicator = communicator;
  context->rank = (uint32_t)rank;
  context->ranks = (uint32_t)ranks;
  context->nodes = (uint32_t)nodes;
  if (name != NULL) strncpy(context->name, name, sizeof context->name - 1);
  context->told_ns = monotonic_ns();
  tell_communicator(context, context->told_ns);
  *handle = context;
  *mask = EVENT_COLL | EVENT_P2P | EVENT_PROXY_OP | EVENT_PROXY_STEP | EVENT_NET;
  return 0;
}

static Result init4(void **context, int *mask, const char *name, uint64_t communicator, int nodes, int ranks,
                    int rank, Logger logger) {
  (void)logger;
  return init(context, mask, name, communicator, nodes, ranks, rank);
}

static Result init5(void **context, uint64_t communicator, int *mask, const char *name, int nodes, int ranks,
                    int rank, Logger logger) {
  (void)logger;
  return init(context, mask, name, communicator, nodes, ranks, rank);
}

static Result finalize(void *context) {
  Header message;
  if (context == NULL) return 0;
  tell(context, &message, TELL_END, sizeof message, monotonic_ns());
  free(context);
  return 0;
}

Profiler4 ncclProfiler_v4 = {"leveller", init4, start4, stop, record, finalize};
Profiler5 ncclProfiler_v5 = {"leveller", init5, start5, stop, record, finalize};
