# Unit tests of src/proc; see tests/unit/module.mk for how to add one.
