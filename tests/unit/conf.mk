# Unit tests of src/conf; see tests/unit/module.mk for how to add one.
