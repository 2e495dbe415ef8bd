# Unit tests of src/master; see tests/unit/module.mk for how to add one.
