"""Shell text read without running it: text comes in, the commands it would start go out."""
