/*
 * print_options.c - prints the option table for scripts/check-options.
 */
#include "conf/conf.h"

int
main(void)
{
	conf_print_options(stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}
