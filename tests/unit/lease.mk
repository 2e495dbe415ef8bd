# Unit tests of src/lease; see tests/unit/module.mk for how to add one.
