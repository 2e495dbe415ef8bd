#include "ctl/commands.h"
