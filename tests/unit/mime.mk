# Unit tests of src/mime; see tests/unit/module.mk for how to add one.
