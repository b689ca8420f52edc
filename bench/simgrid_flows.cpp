// The jobs of bench/sim.py through SimGrid's network model: each job an actor that sleeps (computes), then sends
// its flows at once and waits for all of them, and so on. Built and run by bench/sim.py.
//
// Input, from the file named first: the number of links and each one's bytes/s; the number of jobs, and for each
// when it starts, its seconds of computing, iterations, number of flows, and for each flow: source, destination,
// bytes, number of links, links. A (source, destination) pair has one path. Output: one line per job, the time it ended, and
// then the seconds of wall time and of CPU time that the simulation took.

#include <simgrid/s4u.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
  int source, destination;
  uint64_t bytes;
};

struct Job {
  double start, compute;
  int iterations;
  std::vector<Flow> flows;
  double ended = 0;
};

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  std::ifstream input(argv[1]);
  auto* zone = sg4::create_full_zone("fabric");
  size_t link_count, job_count;
  input >> link_count;
  std::vector<sg4::Link*> links;
  for (size_t i = 0; i < link_count; i++) {
    double bandwidth;
    input >> bandwidth;
    links.push_back(zone->create_link("l" + std::to_string(i), bandwidth)->set_latency(0.0)->seal());
  }
  std::vector<sg4::Host*> hosts;
  auto host = [&](int number) {
    while (static_cast<int>(hosts.size()) <= number)
      hosts.push_back(zone->create_host("h" + std::to_string(hosts.size()), 1e9)->seal());
    return hosts[number];
  };
  input >> job_count;
  std::vector<Job> jobs(job_count);
  std::vector<std::vector<std::vector<sg4::LinkInRoute>>> paths(job_count);
  for (size_t j = 0; j < job_count; j++) {
    size_t flow_count;
    input >> jobs[j].start >> jobs[j].compute >> jobs[j].iterations >> flow_count;
    for (size_t f = 0; f < flow_count; f++) {
      Flow flow;
      size_t hops;
      input >> flow.source >> flow.destination >> flow.bytes >> hops;
      host(std::max(flow.source, flow.destination));
      std::vector<sg4::LinkInRoute> path;
      for (size_t h = 0; h < hops; h++) {
        size_t link;
        input >> link;
        path.emplace_back(links[link]);
      }
      jobs[j].flows.push_back(flow);
      paths[j].push_back(path);
    }
  }
  std::set<std::pair<int, int>> routed;
  for (size_t j = 0; j < job_count; j++)
    for (size_t f = 0; f < jobs[j].flows.size(); f++) {
      const Flow& flow = jobs[j].flows[f];
      if (routed.insert({flow.source, flow.destination}).second)
        zone->add_route(hosts[flow.source]->get_netpoint(), hosts[flow.destination]->get_netpoint(), nullptr, nullptr,
                        paths[j][f], false);
    }
  zone->seal();

  for (size_t j = 0; j < job_count; j++) {
    Job& job = jobs[j];
    sg4::Actor::create("job", hosts[job.flows.empty() ? 0 : job.flows[0].source], [&job, &hosts] {
      sg4::this_actor::sleep_until(job.start);
      for (int n = 0; n < job.iterations; n++) {
        sg4::this_actor::sleep_for(job.compute);
        std::vector<sg4::CommPtr> sending;
        for (const Flow& flow : job.flows)
          sending.push_back(sg4::Comm::sendto_async(hosts[flow.source], hosts[flow.destination], flow.bytes));
        for (auto& comm : sending)
          comm->wait();
      }
      job.ended = sg4::Engine::get_clock();
    });
  }
  auto start = std::chrono::steady_clock::now();
  auto cpu_start = std::clock();
  engine.run();
  auto cpu = std::clock() - cpu_start;
  std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  for (const Job& job : jobs)
    printf("%.17g\n", job.ended);
  printf("%.6f\n%.6f\n", wall.count(), static_cast<double>(cpu) / CLOCKS_PER_SEC);
}
