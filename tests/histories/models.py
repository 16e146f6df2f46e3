"""No models: each test declares its own."""
