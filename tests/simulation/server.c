/*
 * server.c - a small Redis, in virtual time.
 *
 * What src/lease uses of it and nothing more; an unknown command ends the
 * simulation, so that nobody believes it to be done.  Members of sets, hashes
 * and sorted sets stand in order of their coming: a cursor of SSCAN stays good
 * whatever comes and goes meanwhile.
 */
#include "server.h"

#include "world.h"

#include "base/xmem.h"

#include <hiredis/hiredis.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <strings.h>

/* --- tables by name ------------------------------------------------------- */

struct item {
	char *name; /* NULL: it is gone */
	uint32_t hash;
	char *text;   /* string, or field of a hash */
	double score; /* of a sorted set */
	int64_t expires;
	struct table *members; /* key of a set, hash or sorted set */
};

struct table {
	struct item *items; /* in order of their coming */
	size_t n_items, cap_items, n; /* n: without those that are gone */
	uint32_t *places; /* index + 1 of an item, open addressing */
	size_t n_places;
};

static struct table now, saved;
static unsigned run;

static uint32_t
hash_of(const char *name)
{
	uint64_t h = 0x9E3779B97F4A7C15u, word;
	size_t len = strlen(name);

	for (; len >= 8; len -= 8, name += 8) {
		memcpy(&word, name, 8);
		h = (h ^ word) * 0xD6E8FEB86659FD93u;
		h ^= h >> 32;
	}
	for (; len > 0; len--, name++)
		h = (h ^ (unsigned char)*name) * 0x100000001B3u;
	return (uint32_t)(h ^ (h >> 29));
}

static void
table_free(struct table *table)
{
	size_t i;

	for (i = 0; i < table->n_items; i++) {
		free(table->items[i].name);
		free(table->items[i].text);
		if (table->items[i].members != NULL) {
			table_free(table->items[i].members);
			free(table->items[i].members);
		}
	}
	free(table->items);
	free(table->places);
	*table = (struct table){ 0 };
}

static void
place(struct table *table, uint32_t index)
{
	size_t at = table->items[index].hash & (table->n_places - 1);

	while (table->places[at] != 0)
		at = (at + 1) & (table->n_places - 1);
	table->places[at] = index + 1;
}

static void
index_again(struct table *table, size_t n_places)
{
	uint32_t i;

	free(table->places);
	table->n_places = n_places;
	table->places = xcalloc(n_places, sizeof(*table->places));
	for (i = 0; i < table->n_items; i++)
		if (table->items[i].name != NULL)
			place(table, i);
}

static struct item *
find(const struct table *table, const char *name)
{
	uint32_t hash = hash_of(name), index;
	size_t at;

	if (table->n_places == 0)
		return NULL;
	for (at = hash & (table->n_places - 1);
	    (index = table->places[at]) != 0;
	    at = (at + 1) & (table->n_places - 1)) {
		struct item *item = &table->items[index - 1];

		if (item->hash == hash && item->name != NULL &&
		    strcmp(item->name, name) == 0)
			return item;
	}
	return NULL;
}

/* Those that are gone leave the list only when they are most of it and
 * nobody can be in the middle of a scan: it is then begun anew. */
static void
table_remove(struct table *table, struct item *item)
{
	free(item->name);
	free(item->text);
	if (item->members != NULL) {
		table_free(item->members);
		free(item->members);
	}
	*item = (struct item){ 0 };
	if (--table->n == 0)
		table_free(table);
}

static void
compact(struct table *table)
{
	size_t i, kept = 0;

	for (i = 0; i < table->n_items; i++)
		if (table->items[i].name != NULL)
			table->items[kept++] = table->items[i];
	table->n_items = kept;
	index_again(table, table->n_places);
}

static struct item *
table_add(struct table *table, const char *name)
{
	struct item *item;

	if (table == &now && table->n_items > 64 &&
	    table->n_items > 4 * table->n)
		compact(table); /* keys are not scanned */
	if ((table->n_items + 1) * 2 > table->n_places)
		index_again(table, table->n_places ? table->n_places * 2 :
		    16);
	GROW(table->items, table->n_items, table->cap_items);
	item = &table->items[table->n_items];
	*item = (struct item){ .name = xstrdup(name), .hash = hash_of(name),
		.expires = NEVER };
	place(table, (uint32_t)table->n_items++);
	table->n++;
	return item;
}

static void
table_copy(struct table *to, const struct table *from)
{
	struct item *item;
	size_t i;

	table_free(to);
	for (i = 0; i < from->n_items; i++) {
		const struct item *old = &from->items[i];

		if (old->name == NULL)
			continue;
		item = table_add(to, old->name);
		item->score = old->score;
		item->expires = old->expires;
		if (old->text != NULL)
			item->text = xstrdup(old->text);
		if (old->members == NULL)
			continue;
		item->members = xcalloc(1, sizeof(*item->members));
		table_copy(item->members, old->members);
	}
}

/* --- keys ------------------------------------------------------------------- */

static struct item *
key_find(const char *name)
{
	struct item *key = find(&now, name);

	if (key != NULL && key->expires <= sim.now) {
		table_remove(&now, key);
		return NULL;
	}
	return key;
}

static struct table *
members_of(const char *name)
{
	struct item *key = key_find(name);

	return key != NULL ? key->members : NULL;
}

static struct table *
members_made(const char *name)
{
	struct item *key = key_find(name);

	if (key == NULL) {
		key = table_add(&now, name);
		key->members = xcalloc(1, sizeof(*key->members));
	}
	if (key->members == NULL)
		die_bug("%s is of another type", name);
	return key->members;
}

/* An empty set is none. */
static void
drop_empty(const char *name)
{
	struct item *key = find(&now, name);

	if (key != NULL && key->members != NULL && key->members->n == 0)
		table_remove(&now, key);
}

static void
set_text(struct item *item, const char *text)
{
	free(item->text);
	item->text = xstrdup(text);
}

/* --- replies ------------------------------------------------------------------ */

struct call {
	struct arena *memory;
	const char *const *argv;
	size_t argc;
};

static redisReply *
make(struct call *call, int type)
{
	redisReply *reply = ARENA_NEW(call->memory, redisReply);

	reply->type = type;
	return reply;
}

static redisReply *
integer(struct call *call, int64_t number)
{
	redisReply *reply = make(call, REDIS_REPLY_INTEGER);

	reply->integer = number;
	return reply;
}

static redisReply *
string(struct call *call, const char *text)
{
	redisReply *reply;

	if (text == NULL)
		return make(call, REDIS_REPLY_NIL);
	reply = make(call, REDIS_REPLY_STRING);
	reply->len = strlen(text);
	reply->str = arena_strndup(call->memory, text, reply->len);
	return reply;
}

static redisReply *
status(struct call *call)
{
	redisReply *reply = string(call, "OK");

	reply->type = REDIS_REPLY_STATUS;
	return reply;
}

static redisReply *
array(struct call *call, size_t room)
{
	redisReply *reply = make(call, REDIS_REPLY_ARRAY);

	reply->element = ARENA_ARRAY(call->memory, redisReply *, room + 1);
	return reply;
}

static void
add(redisReply *list, redisReply *element)
{
	list->element[list->elements++] = element;
}

/* --- commands: strings -------------------------------------------------------- */

/* BREAK_LAZY: some leases look taken. */
static const char *
lease_text(const char *name, const char *text)
{
	if (sim.broken == BREAK_LAZY && strncmp(name, "sync:lease:", 11) == 0 &&
	    text_number(name + 11) % 20 == 3)
		return "nobody:1:00000000";
	return text;
}

static redisReply *
do_get(struct call *call)
{
	struct item *key = key_find(call->argv[1]);

	return string(call, lease_text(call->argv[1],
	    key != NULL ? key->text : NULL));
}

static redisReply *
do_mget(struct call *call)
{
	redisReply *list = array(call, call->argc);
	struct item *key;
	size_t i;

	for (i = 1; i < call->argc; i++) {
		key = key_find(call->argv[i]);
		add(list, string(call, lease_text(call->argv[i],
		    key != NULL ? key->text : NULL)));
	}
	return list;
}

/* BREAK_TURN: it is always somebody else's. */
static bool
is_refused(const char *name)
{
	return sim.broken == BREAK_TURN && strcmp(name, "sync:turn") == 0;
}

static redisReply *
do_set(struct call *call)
{
	struct item *key = key_find(call->argv[1]);
	int64_t expires = NEVER;
	size_t i;

	for (i = 3; i < call->argc; i++) {
		if (strcasecmp(call->argv[i], "NX") == 0) {
			if (key != NULL || is_refused(call->argv[1]))
				return make(call, REDIS_REPLY_NIL);
		} else if (strcasecmp(call->argv[i], "EX") == 0) {
			expires = sim.now +
			    strtoll(call->argv[++i], NULL, 10) * 1000;
		} else if (strcasecmp(call->argv[i], "PX") == 0) {
			expires = sim.now +
			    strtoll(call->argv[++i], NULL, 10);
		} else {
			die_bug("SET %s", call->argv[i]);
		}
	}
	if (key == NULL)
		key = table_add(&now, call->argv[1]);
	set_text(key, call->argv[2]);
	key->expires = expires;
	return status(call);
}

static redisReply *
do_setex(struct call *call)
{
	const char *argv[] = { "SET", call->argv[1], call->argv[3], "EX",
		call->argv[2] };

	return server_do(call->memory, argv, 5);
}

static redisReply *
do_del(struct call *call)
{
	struct item *key;
	int64_t n = 0;
	size_t i;

	for (i = 1; i < call->argc; i++) {
		key = key_find(call->argv[i]);
		if (key == NULL)
			continue;
		table_remove(&now, key);
		n++;
	}
	return integer(call, n);
}

static redisReply *
do_expire(struct call *call)
{
	struct item *key = key_find(call->argv[1]);

	if (key != NULL)
		key->expires = sim.now +
		    strtoll(call->argv[2], NULL, 10) * 1000;
	return integer(call, key != NULL);
}

static redisReply *
do_pttl(struct call *call)
{
	struct item *key = key_find(call->argv[1]);

	return integer(call, key == NULL ? -2 :
	    key->expires == NEVER ? -1 : key->expires - sim.now);
}

static redisReply *
do_exists(struct call *call)
{
	return integer(call, key_find(call->argv[1]) != NULL);
}

/* --- commands: sets and hashes --------------------------------------------------- */

static redisReply *
do_sadd(struct call *call)
{
	struct table *set = members_made(call->argv[1]);
	int64_t n = 0;
	size_t i;

	for (i = 2; i < call->argc; i++)
		if (find(set, call->argv[i]) == NULL) {
			table_add(set, call->argv[i]);
			n++;
		}
	return integer(call, n);
}

/* SREM, HDEL, ZREM */
static redisReply *
do_remove(struct call *call)
{
	struct table *set = members_of(call->argv[1]);
	struct item *item;
	int64_t n = 0;
	size_t i;

	for (i = 2; set != NULL && i < call->argc; i++)
		if ((item = find(set, call->argv[i])) != NULL) {
			table_remove(set, item);
			n++;
		}
	drop_empty(call->argv[1]);
	return integer(call, n);
}

/* SCARD, HLEN, ZCARD */
static redisReply *
do_count(struct call *call)
{
	struct table *set = members_of(call->argv[1]);

	return integer(call, set != NULL ? (int64_t)set->n : 0);
}

static redisReply *
do_sismember(struct call *call)
{
	struct table *set = members_of(call->argv[1]);

	return integer(call, set != NULL && find(set, call->argv[2]) != NULL);
}

static redisReply *
do_sscan(struct call *call)
{
	struct table *set = members_of(call->argv[1]);
	size_t at = strtoull(call->argv[2], NULL, 10);
	size_t count = call->argc > 4 ? strtoull(call->argv[4], NULL, 10) : 10;
	redisReply *answer = array(call, 2), *list = array(call, count);
	char cursor[24] = "0";

	for (; set != NULL && at < set->n_items && list->elements < count;
	    at++)
		if (set->items[at].name != NULL)
			add(list, string(call, set->items[at].name));
	if (set != NULL && at < set->n_items)
		snprintf(cursor, sizeof(cursor), "%zu", at);
	add(answer, string(call, cursor));
	add(answer, list);
	return answer;
}

static redisReply *
do_hset(struct call *call)
{
	struct table *hash = members_made(call->argv[1]);
	struct item *item;
	size_t i;

	for (i = 2; i + 1 < call->argc; i += 2) {
		item = find(hash, call->argv[i]);
		if (item == NULL)
			item = table_add(hash, call->argv[i]);
		set_text(item, call->argv[i + 1]);
	}
	return integer(call, 1);
}

static redisReply *
field(struct call *call, const char *name)
{
	struct table *hash = members_of(call->argv[1]);
	struct item *item = hash != NULL ? find(hash, name) : NULL;

	return string(call, item != NULL ? item->text : NULL);
}

static redisReply *
do_hget(struct call *call)
{
	return field(call, call->argv[2]);
}

static redisReply *
do_hmget(struct call *call)
{
	redisReply *list = array(call, call->argc);
	size_t i;

	for (i = 2; i < call->argc; i++)
		add(list, field(call, call->argv[i]));
	return list;
}

static redisReply *
do_hsetnx(struct call *call)
{
	struct table *hash = members_of(call->argv[1]);

	if (hash != NULL && find(hash, call->argv[2]) != NULL)
		return integer(call, 0);
	return do_hset(call);
}

static redisReply *
do_hgetall(struct call *call)
{
	struct table *hash = members_of(call->argv[1]);
	redisReply *list = array(call, hash != NULL ? hash->n * 2 : 0);
	size_t i;

	for (i = 0; hash != NULL && i < hash->n_items; i++) {
		if (hash->items[i].name == NULL)
			continue;
		add(list, string(call, hash->items[i].name));
		add(list, string(call, hash->items[i].text));
	}
	return list;
}

/* --- commands: sorted sets -------------------------------------------------------- */

static redisReply *
do_zadd(struct call *call)
{
	struct table *set = members_made(call->argv[1]);
	struct item *item;
	int64_t n = 0;
	size_t i;

	for (i = 2; i + 1 < call->argc; i += 2) {
		item = find(set, call->argv[i + 1]);
		n += item == NULL;
		if (item == NULL)
			item = table_add(set, call->argv[i + 1]);
		item->score = strtod(call->argv[i], NULL);
	}
	return integer(call, n);
}

/* Whether there is one is all that is asked for. */
static redisReply *
do_zscore(struct call *call)
{
	struct table *set = members_of(call->argv[1]);

	return string(call, set != NULL && find(set, call->argv[2]) != NULL ?
	    "1" : NULL);
}

/* From "-inf" only. */
static redisReply *
do_zremrangebyscore(struct call *call)
{
	struct table *set = members_of(call->argv[1]);
	double max = strtod(call->argv[3], NULL);
	int64_t n = 0;
	size_t i;

	if (strcmp(call->argv[2], "-inf") != 0)
		die_bug("ZREMRANGEBYSCORE from %s", call->argv[2]);
	for (i = 0; set != NULL && i < set->n_items; i++)
		if (set->items[i].name != NULL && set->items[i].score <= max) {
			table_remove(set, &set->items[i]);
			n++;
		}
	drop_empty(call->argv[1]);
	return integer(call, n);
}

/* All, in any order. */
static redisReply *
do_zrange(struct call *call)
{
	struct table *set = members_of(call->argv[1]);
	redisReply *list = array(call, set != NULL ? set->n : 0);
	size_t i;

	for (i = 0; set != NULL && i < set->n_items; i++)
		if (set->items[i].name != NULL)
			add(list, string(call, set->items[i].name));
	return list;
}

/* --- commands: the rest -------------------------------------------------------------- */

static redisReply *
do_time(struct call *call)
{
	redisReply *list = array(call, 2);
	char text[24];

	snprintf(text, sizeof(text), "%lld",
	    (long long)(WALL_SECS + sim.now / 1000));
	add(list, string(call, text));
	snprintf(text, sizeof(text), "%lld",
	    (long long)(sim.now % 1000 * 1000));
	add(list, string(call, text));
	return list;
}

static redisReply *
do_info(struct call *call)
{
	char text[80];

	snprintf(text, sizeof(text), "# Server\r\nrun_id:%040x\r\n",
	    sim.broken == BREAK_ERA ? 0 : run);
	return string(call, text);
}

static redisReply *
do_publish(struct call *call)
{
	server_published(call->argv[1], call->argv[2]);
	return integer(call, 1);
}

static const struct {
	const char *name;
	size_t least; /* words */
	redisReply *(*run)(struct call *call);
} commands[] = {
	{ "get", 2, do_get },
	{ "expire", 3, do_expire },
	{ "mget", 2, do_mget },
	{ "set", 3, do_set },
	{ "time", 1, do_time },
	{ "hmget", 3, do_hmget },
	{ "hget", 3, do_hget },
	{ "del", 2, do_del },
	{ "zadd", 4, do_zadd },
	{ "zremrangebyscore", 4, do_zremrangebyscore },
	{ "zcard", 2, do_count },
	{ "scard", 2, do_count },
	{ "pttl", 2, do_pttl },
	{ "exists", 2, do_exists },
	{ "sscan", 3, do_sscan },
	{ "sadd", 3, do_sadd },
	{ "srem", 3, do_remove },
	{ "sismember", 3, do_sismember },
	{ "hset", 4, do_hset },
	{ "hsetnx", 4, do_hsetnx },
	{ "hgetall", 2, do_hgetall },
	{ "zscore", 3, do_zscore },
	{ "hlen", 2, do_count },
	{ "hdel", 3, do_remove },
	{ "zrem", 3, do_remove },
	{ "zrange", 4, do_zrange },
	{ "setex", 4, do_setex },
	{ "info", 1, do_info },
	{ "publish", 3, do_publish },
};

redisReply *
server_do(struct arena *memory, const char *const *argv, size_t argc)
{
	struct call call = { memory, argv, argc };
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcasecmp(commands[i].name, argv[0]) == 0)
			break;
	if (i == sizeof(commands) / sizeof(commands[0]) ||
	    argc < commands[i].least)
		die_bug("tests/simulation/server.c has no command %s of %zu "
		    "words", argv[0], argc);
	return commands[i].run(&call);
}

/* --- scripts ---------------------------------------------------------------------------- */

static lua_State *lua;
static struct arena *lua_memory; /* of the script that is running */

static void
push(const redisReply *reply)
{
	size_t i;

	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		lua_pushnumber(lua, (lua_Number)reply->integer);
		break;
	case REDIS_REPLY_STRING:
		lua_pushlstring(lua, reply->str, (size_t)reply->len);
		break;
	case REDIS_REPLY_STATUS:
		lua_createtable(lua, 0, 1);
		lua_pushlstring(lua, reply->str, (size_t)reply->len);
		lua_setfield(lua, -2, "ok");
		break;
	case REDIS_REPLY_ARRAY:
		lua_createtable(lua, (int)reply->elements, 0);
		for (i = 0; i < reply->elements; i++) {
			push(reply->element[i]);
			lua_rawseti(lua, -2, (int)i + 1);
		}
		break;
	default:
		lua_pushboolean(lua, 0);
		break;
	}
}

/* redis.call, redis.pcall */
static int
on_call(lua_State *state)
{
	const char *argv[512];
	int i, n = lua_gettop(state);

	if (n < 1 || n > 512)
		die_bug("redis.call with %d words", n);
	for (i = 0; i < n; i++)
		argv[i] = luaL_checkstring(state, i + 1);
	push(server_do(lua_memory, argv, (size_t)n));
	return 1;
}

/* What a script returns, by Redis's rules. */
static redisReply *
pop(struct call *call, int at)
{
	redisReply *reply;
	size_t i, n;

	switch (lua_type(lua, at)) {
	case LUA_TNUMBER:
		return integer(call, (int64_t)lua_tonumber(lua, at));
	case LUA_TSTRING:
		return string(call, lua_tostring(lua, at));
	case LUA_TBOOLEAN:
		return lua_toboolean(lua, at) ? integer(call, 1) :
		    make(call, REDIS_REPLY_NIL);
	case LUA_TTABLE:
		n = lua_objlen(lua, at);
		reply = array(call, n);
		for (i = 1; i <= n; i++) {
			lua_rawgeti(lua, at, (int)i);
			if (lua_isnil(lua, -1)) {
				lua_pop(lua, 1);
				break;
			}
			add(reply, pop(call, lua_gettop(lua)));
			lua_pop(lua, 1);
		}
		return reply;
	default:
		return make(call, REDIS_REPLY_NIL);
	}
}

static void
open_lua(void)
{
	lua = luaL_newstate();
	luaL_openlibs(lua);
	lua_newtable(lua);
	lua_pushcfunction(lua, on_call);
	lua_setfield(lua, -2, "call");
	lua_pushcfunction(lua, on_call);
	lua_setfield(lua, -2, "pcall");
	lua_setglobal(lua, "redis");
	lua_newtable(lua); /* compiled scripts, by source */
	lua_setfield(lua, LUA_REGISTRYINDEX, "scripts");
}

static void
push_script(const char *source)
{
	lua_getfield(lua, LUA_REGISTRYINDEX, "scripts");
	lua_pushlightuserdata(lua, (void *)(uintptr_t)source);
	lua_rawget(lua, -2);
	if (lua_isnil(lua, -1)) {
		lua_pop(lua, 1);
		if (luaL_loadstring(lua, source) != 0)
			die_bug("script: %s", lua_tostring(lua, -1));
		lua_pushlightuserdata(lua, (void *)(uintptr_t)source);
		lua_pushvalue(lua, -2);
		lua_rawset(lua, -4);
	}
	lua_remove(lua, -2);
}

static void
set_list(const char *name, const char *const *items, size_t n)
{
	size_t i;

	lua_createtable(lua, (int)n, 0);
	for (i = 0; i < n; i++) {
		lua_pushstring(lua, items[i]);
		lua_rawseti(lua, -2, (int)i + 1);
	}
	lua_setglobal(lua, name);
}

redisReply *
server_eval(struct arena *memory, const char *source, const char *const *args,
    size_t n_keys, size_t n_args)
{
	struct call call = { .memory = memory };
	redisReply *reply;

	if (lua == NULL)
		open_lua();
	lua_memory = memory;
	set_list("KEYS", args, n_keys);
	set_list("ARGV", args + n_keys, n_args - n_keys);
	push_script(source);
	if (lua_pcall(lua, 0, 1, 0) != 0)
		die_bug("script: %s", lua_tostring(lua, -1));
	reply = pop(&call, lua_gettop(lua));
	lua_settop(lua, 0);
	return reply;
}

/* --- the whole ------------------------------------------------------------------------------ */

void
data_save(void)
{
	table_copy(&saved, &now);
}

void
data_load_saved(void)
{
	table_copy(&now, &saved);
}

void
data_wipe(void)
{
	struct table empty = { 0 }, *era = members_of("sync:era");
	struct item *kept;

	if (sim.broken == BREAK_ERA && era != NULL) {
		kept = table_add(&empty, "sync:era");
		kept->members = xcalloc(1, sizeof(*kept->members));
		table_copy(kept->members, era);
	}
	table_free(&now);
	now = empty;
}

void
data_new_run(void)
{
	run++;
}

void
data_reset(void)
{
	table_free(&now);
	table_free(&saved);
	run = 1;
}
