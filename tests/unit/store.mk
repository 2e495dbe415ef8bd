# Unit tests of src/store; see tests/unit/module.mk for how to add one.
