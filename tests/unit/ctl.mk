# Unit tests of src/ctl; see tests/unit/module.mk for how to add one.
