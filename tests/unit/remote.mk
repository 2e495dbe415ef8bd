# Unit tests of src/remote; see tests/unit/module.mk for how to add one.
