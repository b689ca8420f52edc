"""A real P4Runtime server in front of a real switch: passes everything on, with the faults one asks for."""

import asyncio
import contextlib
from dataclasses import replace

import grpc
from finsy.proto import gnmi, p4r

SERVICE = "p4.v1.P4Runtime"
UNARY = ("Write", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 1 << 20), ("grpc.absolute_max_metadata_size", 1 << 21)]  # fmt: skip


class Proxy:
    """``async with Proxy(process) as proxy``: connect to ``proxy.target()`` instead of the process's."""

    def __init__(self, process):
        self._process = process
        self.awake = asyncio.Event()
        """Nothing is passed on, to or fro, while this is not set."""
        self.awake.set()
        self.delay_s = 0.0
        """Before every call is passed on."""
        self.delay_of = None
        """Given each WriteRequest, returns so many seconds more for it."""
        self.change_write = None
        """Given each WriteRequest, returns the one to pass on; or None, for no answer at all."""
        self.fail_write = None
        """Given each WriteRequest, returns the status code to answer with, and nothing else; or None."""
        self.change_read = None
        """Given each ReadResponse, alters it."""
        self.calls = []
        """(method, size of the request, the WriteRequest where it is one), as they came."""
        self.gnmi = None
        """Given a gNMI path as text, returns the numbers that are there; None: there is no gNMI."""
        self.streams = 0
        self.most_under_way = 0
        """Writes that were under way at the same time."""
        self._under_way = 0

    def writes(self):
        return [request for method, _, request in self.calls if method == "Write"]

    def target(self, name="S1"):
        return replace(self._process.target(name), address=f"127.0.0.1:{self._port}")

    async def apply(self, write):
        """Pass a WriteRequest on although nobody waits for its answer."""
        await self._channel.unary_unary(f"/{SERVICE}/Write")(write.SerializeToString())

    async def __aenter__(self):
        self._channel = grpc.aio.insecure_channel(self._process.address, options=NO_LIMIT)
        self._server = grpc.aio.server(options=NO_LIMIT)
        handlers = {name: grpc.unary_unary_rpc_method_handler(self._unary(name)) for name in UNARY}
        handlers["Read"] = grpc.unary_stream_rpc_method_handler(self._read)
        handlers["StreamChannel"] = grpc.stream_stream_rpc_method_handler(self._stream)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        get = grpc.unary_unary_rpc_method_handler(
            self._get, gnmi.GetRequest.FromString, gnmi.GetResponse.SerializeToString
        )
        gnmi_handler = grpc.method_handlers_generic_handler("gnmi.gNMI", {"Get": get})
        self._server.add_generic_rpc_handlers((gnmi_handler,))
        self._port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return self

    async def __aexit__(self, *error):
        self.awake.set()
        await self._server.stop(None)
        await self._channel.close(None)

    def _unary(self, name):
        passed_on = self._channel.unary_unary(f"/{SERVICE}/{name}")

        async def answer(request, context):
            write = p4r.WriteRequest.FromString(request) if name == "Write" else None
            self.calls.append((name, len(request), write))
            await self._pause()
            if write is not None and self.delay_of is not None:
                await asyncio.sleep(self.delay_of(write))
            if write is not None and self.fail_write is not None:
                code = self.fail_write(write)
                if code is not None:
                    await context.abort(code, "as asked for")
            if write is not None and self.change_write is not None:
                changed = self.change_write(write)
                if changed is None:
                    await asyncio.Event().wait()
                request = changed.SerializeToString()
            self._under_way += name == "Write"
            self.most_under_way = max(self.most_under_way, self._under_way)
            try:
                async with failing_alike(context):
                    answered = await passed_on(request)
                    await self._pause()
                    return answered
            finally:
                self._under_way -= name == "Write"

        return answer

    async def _get(self, request, context):
        if self.gnmi is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no gNMI here")
        numbers = self.gnmi("/".join(element.name for element in request.path[0].elem))
        updates = [
            gnmi.Update(path=request.path[0], val=gnmi.TypedValue(uint_val=number)) for number in numbers
        ]
        return gnmi.GetResponse(notification=[gnmi.Notification(update=updates)])

    async def _read(self, request, context):
        self.calls.append(("Read", len(request), None))
        await self._pause()
        async with failing_alike(context):
            async for answer in self._channel.unary_stream(f"/{SERVICE}/Read")(request):
                await self.awake.wait()
                if self.change_read is not None:
                    message = p4r.ReadResponse.FromString(answer)
                    self.change_read(message)
                    yield message.SerializeToString()
                else:
                    yield answer

    async def _stream(self, requests, context):
        self.streams += 1
        await self._pause()
        call = self._channel.stream_stream(f"/{SERVICE}/StreamChannel")()

        async def pump():
            async for request in requests:
                await call.write(request)
            await call.done_writing()

        pumping = asyncio.create_task(pump())
        try:
            async with failing_alike(context):
                while (answer := await call.read()) is not grpc.aio.EOF:
                    await self.awake.wait()
                    yield answer
        finally:
            pumping.cancel()
            call.cancel()

    async def _pause(self):
        await asyncio.sleep(self.delay_s)
        await self.awake.wait()


@contextlib.asynccontextmanager
async def failing_alike(context):
    """Answer with the status that the switch answered with."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        await context.abort(error.code(), error.details(), tuple(error.trailing_metadata() or ()))
