"""KubeSchedulerConfiguration v1 and Roadstead's settings: schema, defaults, loading, presets."""
