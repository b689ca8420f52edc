"""The gRPC service p4.v1.P4Runtime over a Device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice

import grpc
from finsy.proto import p4r, p4r_grpc

from softswitch.p4runtime.device import Device
from softswitch.p4runtime.errors import P4Error, abort, abort_batch
from softswitch.p4runtime.session import Session

API_VERSION = "1.5.0"
"""Of the P4Runtime API that is implemented."""
_CHUNK = 256
"""Entities in one ReadResponse."""


class P4RuntimeService(p4r_grpc.P4RuntimeServicer):
    """Unary calls go to the device as they are; a stream has a thread that reads and one that writes."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def Write(self, request: p4r.WriteRequest, context: grpc.ServicerContext) -> p4r.WriteResponse:  # noqa: N802
        """Update entities (spec, Write RPC)."""
        try:
            results = self._device.write(request)
        except P4Error as error:
            abort(context, error)
        if any(results):
            abort_batch(context, "Write failure.", results)
        return p4r.WriteResponse()

    def Read(  # noqa: N802
        self, request: p4r.ReadRequest, context: grpc.ServicerContext
    ) -> Iterator[p4r.ReadResponse]:
        """Stream entities (spec, Read RPC); requests that fail are reported at the end, the others served."""
        try:
            selections = self._device.read(request)
        except P4Error as error:
            abort(context, error)
        errors: list[P4Error | None] = []
        for entities in selections:
            errors.append(None)
            try:
                while chunk := list(islice(entities, _CHUNK)):
                    yield p4r.ReadResponse(entities=chunk)
            except P4Error as error:
                errors[-1] = error
        if any(errors):
            abort_batch(context, "Read failure.", errors)

    def SetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.SetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or realize a program (spec, SetForwardingPipelineConfig RPC)."""
        try:
            self._device.set_config(request)
        except P4Error as error:
            abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(  # noqa: N802
        self, request: p4r.GetForwardingPipelineConfigRequest, context: grpc.ServicerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the program (spec, GetForwardingPipelineConfig RPC)."""
        try:
            return p4r.GetForwardingPipelineConfigResponse(config=self._device.get_config(request))
        except P4Error as error:
            abort(context, error)

    def StreamChannel(  # noqa: N802
        self, request_iterator: Iterator[p4r.StreamMessageRequest], context: grpc.ServicerContext
    ) -> Iterator[p4r.StreamMessageResponse]:
        """Serve one client's session: arbitration, packet I/O, digests, notifications."""
        session = Session()
        if not context.add_callback(session.close):
            return  # the client has gone already
        reader = threading.Thread(
            target=self._read_stream, args=(session, request_iterator), name="stream reader", daemon=True
        )
        reader.start()
        try:
            yield from session.messages()
        finally:
            self._device.arbitration.disconnect(session)
        if session.error is not None:
            abort(context, session.error)

    def Capabilities(  # noqa: N802
        self, request: p4r.CapabilitiesRequest, context: grpc.ServicerContext
    ) -> p4r.CapabilitiesResponse:
        """Return the version of the API (spec, Capabilities RPC)."""
        try:
            if request.device_id:
                self._device.arbitration.check_device(request.device_id)
        except P4Error as error:
            abort(context, error)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def _read_stream(self, session: Session, requests: Iterator[p4r.StreamMessageRequest]) -> None:
        try:
            for request in requests:
                self._device.handle(session, request)
        except P4Error as error:
            session.fail(error)
        except grpc.RpcError:
            session.close()  # the client has gone
        else:
            session.close()  # the client has said that it is done
