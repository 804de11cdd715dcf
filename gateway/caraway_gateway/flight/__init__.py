"""The Arrow Flight endpoint: gRPC threads in front of the process's query service.

Here live the RPCs, who calls them and how errors look on that wire. No SQL is planned here. This
package alone imports pyarrow.flight, which is slow to load; whoever needs the endpoint imports
it when it starts one.
"""

from caraway_gateway.flight.endpoint import FlightEndpoint

__all__ = ["FlightEndpoint"]
