/*
 * banned.h - calls that are easy to misuse are compile errors.
 *
 * Included by every header of base/, so that every file sees it.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/* System headers first: some declare the names below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(f) sorry_##f##_is_banned_here

#undef strcpy
#define strcpy(a, b) BANNED(strcpy) /* snprintf, arena_strdup */
#undef strcat
#define strcat(a, b) BANNED(strcat) /* struct buf */
#undef strncpy
#define strncpy(a, b, n) BANNED(strncpy) /* strlcpy of libbsd */
#undef strncat
#define strncat(a, b, n) BANNED(strncat)
#undef sprintf
#define sprintf BANNED(sprintf) /* snprintf, buf_addf */
#undef vsprintf
#define vsprintf BANNED(vsprintf)
#undef strtok
#define strtok(a, b) BANNED(strtok)
#undef gmtime
#define gmtime(t) BANNED(gmtime) /* gmtime_r */
#undef localtime
#define localtime(t) BANNED(localtime)
#undef asctime
#define asctime(t) BANNED(asctime)
#undef ctime
#define ctime(t) BANNED(ctime)
#undef atoi
#define atoi(s) BANNED(atoi) /* strtonum of libbsd, number_parse */

#endif
