# Unit tests of src/ipc; see tests/unit/module.mk for how to add one.
