/*
 * iconv.c - no charset of libc's for anybody in this program.
 *
 * Runs in: all processes.  Never blocks.
 *
 * gmime decodes the parameters of a part's header by itself, in whatever
 * charset a foreign message names there.  What it makes of them is not used
 * (param.c reads them), but libc would look for the charset in files and load
 * it as code.  The linker takes this definition for the libraries, too, so
 * that to gmime every charset is unknown.  Nobody else here needs iconv:
 * names of hosts beyond ASCII, which getaddrinfo() would convert, have no
 * meaning in the C locale of a daemon anyway.
 */
#include "mime/codec.h"

#include <errno.h>
#include <iconv.h>

iconv_t
iconv_open(const char *to, const char *from)
{
	(void)to;
	(void)from;
	errno = EINVAL;
	return (iconv_t)-1;
}

/* Called so that the linker takes this file out of libmime.a. */
void
codec_refuse_iconv(void)
{
}
