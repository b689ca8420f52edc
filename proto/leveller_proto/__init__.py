"""The agents' gRPC protocol; generated from agent.proto by `make proto`."""
