# Unit tests of src/sync; see tests/unit/module.mk for how to add one.
