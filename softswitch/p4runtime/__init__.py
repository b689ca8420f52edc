"""The P4Runtime 1.5 server: arbitration, pipeline config, entities, packet I/O and notifications."""
