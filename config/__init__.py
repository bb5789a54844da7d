"""KubeSchedulerConfiguration v1 and our own settings: schema, defaults, loading, presets."""
