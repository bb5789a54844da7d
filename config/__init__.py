"""KubeSchedulerConfiguration v1 and Roadstead's settings: schema, defaults, loading, presets.

A configuration passes upstream's stages: *decode* (text to the models of `schema`), defaults,
*validate*, and *build* (profiles, with multiPoint expanded). An older document is translated first
(`legacy`). A *document* is a whole YAML or JSON text as plain data.
"""
