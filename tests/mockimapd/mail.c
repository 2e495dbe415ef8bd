/*
 * mail.c - messages that exist only as a number until somebody reads them.
 *
 * Runs in: mockimapd.  Never blocks.
 *
 * The body is lines of equal length, and line k is a function of (seed, k):
 * that is what makes any offset readable without the bytes before it.
 */
#include "config.h"

#include "mail.h"

#include "base/xmem.h"

#include <gnutls/crypto.h>

#define LINE_BYTES 78 /* with CRLF */
#define CHUNK 65536
#define IS_BIG 1 /* lowest bit of a seed */
/* Date: lines start here (2020-01-01) and step by ten minutes a UID. */
#define BIRTH_SECS 1577836800
#define BIRTH_STEP 600

static const char *const words[64] = {
	"the", "order", "of", "please", "meeting", "and", "report", "we",
	"invoice", "to", "garden", "have", "received", "your", "letter",
	"about", "window", "that", "river", "was", "delivered", "in",
	"morning", "before", "station", "for", "question", "with", "answer",
	"from", "paper", "this", "harbour", "will", "season", "be",
	"finished", "by", "friday", "evening", "school", "our", "account",
	"is", "number", "as", "agreed", "between", "mountain", "not",
	"kitchen", "only", "bicycle", "more", "than", "later", "journey",
	"but", "summer", "when", "weather", "again", "thanks", "soon",
};
static const char *const first_names[16] = {
	"Ann", "Bela", "Carla", "David", "Elin", "Farid", "Greta", "Hugo",
	"Ines", "Jonas", "Kirsten", "Luis", "Mara", "Nils", "Olga", "Pavel",
};
static const char *const last_names[16] = {
	"Lee", "Novak", "Okafor", "Berg", "Silva", "Tanaka", "Weber",
	"Dubois", "Rossi", "Jensen", "Kaya", "Moreau", "Haas", "Lindt",
	"Fisher", "Petrov",
};

struct raw *
raw_new(const void *bytes, uint32_t size)
{
	struct raw *raw = xmalloc(sizeof(*raw) + size);

	raw->users = 1;
	raw->size = size;
	memcpy(raw->bytes, bytes, size);
	return raw;
}

void
raw_drop(struct raw **raw)
{
	if (*raw != NULL && --(*raw)->users == 0)
		free(*raw);
	*raw = NULL;
}

uint64_t
mail_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t
mix_text(uint64_t x, const char *s)
{
	for (; *s != '\0'; s++)
		x = (x ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return mail_mix(x);
}

uint64_t
mail_seed(uint64_t world, const char *login, const char *folder, uint32_t uid,
    bool is_big)
{
	uint64_t x = mail_mix(mix_text(mix_text(world, login), folder) + uid);

	return is_big ? x | IS_BIG : x & ~(uint64_t)IS_BIG;
}

static void
add_words(struct buf *out, uint64_t x, unsigned n)
{
	for (unsigned i = 0; i < n; i++, x >>= 6)
		buf_addf(out, "%s%s", i > 0 ? " " : "", words[x & 63]);
}

static void
add_date(struct buf *out, int64_t secs)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu",
		"Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May",
		"Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t t = (time_t)secs;
	struct tm tm;

	gmtime_r(&t, &tm);
	buf_addf(out, "Date: %s, %02d %s %d %02d:%02d:%02d +0000\r\n",
	    days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
	    tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void
make_head(struct buf *out, uint64_t seed, const char *login, uint32_t born)
{
	uint64_t x = mail_mix(seed);
	const char *first = first_names[x & 15];
	const char *last = last_names[(x >> 4) & 15];

	buf_addf(out, "Message-ID: <%016llx@mock.example>\r\n",
	    (unsigned long long)seed);
	add_date(out, BIRTH_SECS + (int64_t)born * BIRTH_STEP);
	buf_addf(out, "From: \"%s %s\" <%s.%s@example.org>\r\n", first, last,
	    first, last);
	buf_addf(out, "To: <%s@example.net>\r\nSubject: ", login);
	add_words(out, x >> 8, 3 + (x & 3));
	buf_adds(out, "\r\nMIME-Version: 1.0\r\n");
	if (seed & IS_BIG)
		buf_addf(out, "Content-Type: multipart/mixed; "
		    "boundary=\"=-%016llx\"\r\n\r\n", (unsigned long long)x);
	else
		buf_adds(out,
		    "Content-Type: text/plain; charset=utf-8\r\n\r\n");
}

/* Before and after the lines of an attachment. */
static void
make_parts(struct buf *head, struct buf *tail, uint64_t seed)
{
	unsigned long long boundary = mail_mix(seed);

	buf_addf(head, "--=-%016llx\r\nContent-Type: text/plain\r\n\r\n",
	    boundary);
	add_words(head, mail_mix(seed + 1), 8);
	buf_addf(head, "\r\n--=-%016llx\r\n"
	    "Content-Type: application/octet-stream\r\n"
	    "Content-Disposition: attachment; filename=\"%s.bin\"\r\n"
	    "Content-Transfer-Encoding: base64\r\n\r\n", boundary,
	    words[seed >> 58]);
	buf_addf(tail, "--=-%016llx--\r\n", boundary);
}

uint32_t
mail_size(uint64_t seed, const char *login, uint32_t born, uint32_t wanted)
{
	struct buf head = BUF_INIT, tail = BUF_INIT;
	uint32_t frame, lines = 1;

	make_head(&head, seed, login, born);
	if (seed & IS_BIG)
		make_parts(&head, &tail, seed);
	frame = (uint32_t)(head.len + tail.len);
	if (wanted > frame)
		lines = (wanted - frame + LINE_BYTES - 1) / LINE_BYTES;
	buf_release(&head);
	buf_release(&tail);
	return frame + lines * LINE_BYTES;
}

void
mail_open(struct mail_reader *reader, const struct mail *mail,
    const char *login)
{
	*reader = (struct mail_reader){ .mail = *mail };
	if (mail->raw != NULL) {
		mail->raw->users++;
		return;
	}
	make_head(&reader->head, mail->seed, login, mail->born);
	reader->body = (uint32_t)reader->head.len;
	if (mail->seed & IS_BIG)
		make_parts(&reader->head, &reader->tail, mail->seed);
}

void
mail_close(struct mail_reader *reader)
{
	raw_drop(&reader->mail.raw);
	buf_release(&reader->head);
	buf_release(&reader->tail);
}

static void
text_line(char line[LINE_BYTES], uint64_t x)
{
	size_t len = 0;

	while (len < LINE_BYTES - 2) {
		const char *word = words[x & 63];
		size_t n = strlen(word);

		if (n > LINE_BYTES - 2 - len)
			n = LINE_BYTES - 2 - len;
		memcpy(line + len, word, n);
		len += n;
		if (len < LINE_BYTES - 2) {
			line[len] = len % 5 == 0 ? ',' : ' ';
			len++;
		}
		x = mail_mix(x);
	}
}

static void
base64_line(char line[LINE_BYTES], uint64_t x)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < LINE_BYTES - 2; i++) {
		if (i % 10 == 0)
			x = mail_mix(x);
		line[i] = digits[(x >> (6 * (i % 10))) & 63];
	}
}

static void
make_line(char line[LINE_BYTES], uint64_t seed, uint32_t number)
{
	uint64_t x = mail_mix(seed ^ ((uint64_t)number << 32));

	if (seed & IS_BIG)
		base64_line(line, x);
	else
		text_line(line, x);
	line[LINE_BYTES - 2] = '\r';
	line[LINE_BYTES - 1] = '\n';
}

/* Adds what of bytes[0..n) lies in [*offset, *offset + *len), which are
 * relative to it, and moves both on. */
static void
add_slice(struct buf *out, const char *bytes, size_t n, size_t *offset,
    size_t *len)
{
	if (*offset >= n) {
		*offset -= n;
		return;
	}
	n -= *offset;
	if (n > *len)
		n = *len;
	buf_add(out, bytes + *offset, n);
	*offset = 0;
	*len -= n;
}

void
mail_read(const struct mail_reader *reader, uint32_t from, size_t len,
    struct buf *out)
{
	const struct mail *mail = &reader->mail;
	size_t offset = from, body;

	if (offset >= mail->size)
		return;
	if (mail->raw != NULL) {
		add_slice(out, mail->raw->bytes, mail->raw->size, &offset,
		    &len);
		return;
	}
	body = mail->size - reader->head.len - reader->tail.len;
	add_slice(out, reader->head.data, reader->head.len, &offset, &len);
	if (offset < body) {
		uint32_t number = (uint32_t)(offset / LINE_BYTES);
		uint32_t end = (uint32_t)(body / LINE_BYTES);

		offset %= LINE_BYTES;
		for (; number < end && len > 0; number++) {
			char line[LINE_BYTES];

			make_line(line, mail->seed, number);
			add_slice(out, line, sizeof(line), &offset, &len);
		}
	} else {
		offset -= body;
	}
	if (reader->tail.len > 0)
		add_slice(out, reader->tail.data, reader->tail.len, &offset,
		    &len);
}

static uint32_t
find_end_of_head(const char *p, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (p[i] != '\n')
			continue;
		if (p[i + 1] == '\n')
			return (uint32_t)i + 2;
		if (p[i + 1] == '\r' && i + 2 < len && p[i + 2] == '\n')
			return (uint32_t)i + 3;
	}
	return (uint32_t)len;
}

uint32_t
mail_head_size(const struct mail_reader *reader)
{
	const struct raw *raw = reader->mail.raw;

	if (raw == NULL)
		return reader->body;
	if (raw->size >= 2 && memcmp(raw->bytes, "\r\n", 2) == 0)
		return 2;
	return find_end_of_head(raw->bytes, raw->size);
}

void
mail_digest(const struct mail *mail, const char *login, char out[65])
{
	struct mail_reader reader;
	struct buf chunk = BUF_INIT;
	gnutls_hash_hd_t hash;
	unsigned char sum[32];

	if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
		abort();
	mail_open(&reader, mail, login);
	for (uint32_t at = 0; at < mail->size; at += chunk.len) {
		buf_reset(&chunk);
		mail_read(&reader, at, CHUNK, &chunk);
		gnutls_hash(hash, chunk.data, chunk.len);
	}
	gnutls_hash_deinit(hash, sum);
	mail_close(&reader);
	buf_release(&chunk);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}
