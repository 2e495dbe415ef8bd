/*
 * world.c - everything the mock knows: groups, accounts, counters.
 *
 * Runs in: mockimapd.  Never blocks.
 */
#include "config.h"

#include "world.h"

#include "base/xmem.h"
#include "mailbox.h"

#include <bsd/string.h>

#include <fnmatch.h>
#include <strings.h>

#define LOGIN_MAX 128

const char *const capability_names[CAP_COUNT] = {
#define X(symbol, word) [symbol] = word,
	CAPABILITIES(X)
#undef X
};

bool
capability_parse(const char *word, unsigned *caps_r)
{
	static const struct {
		const char *word;
		unsigned caps;
	} sets[] = { { "full", CAPS_FULL }, { "condstore", CAPS_CONDSTORE },
		{ "plain", CAPS_PLAIN } };

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (strcasecmp(word, sets[i].word) == 0) {
			*caps_r = sets[i].caps;
			return true;
		}
	for (unsigned i = 0; i < CAP_COUNT; i++)
		if (strcasecmp(word, capability_names[i]) == 0) {
			*caps_r = CAP_BIT(i);
			return true;
		}
	return false;
}

void
world_init(struct world *world, uint64_t seed)
{
	*world = (struct world){ .seed = seed, .table_size = 1024 };
	STAILQ_INIT(&world->groups);
	LIST_INIT(&world->sessions);
	world->table = xcalloc(world->table_size, sizeof(*world->table));
}

struct group *
world_group(struct world *world, const char *name)
{
	struct group *group;

	STAILQ_FOREACH(group, &world->groups, entry)
		if (strcmp(group->name, name) == 0)
			return group;
	group = xcalloc(1, sizeof(*group));
	strlcpy(group->name, name, sizeof(group->name));
	strlcpy(group->match, "u*", sizeof(group->match));
	strlcpy(group->password, "secret", sizeof(group->password));
	strlcpy(group->limit_text, "NO [LIMIT] Too many connections",
	    sizeof(group->limit_text));
	group->caps = CAPS_FULL;
	group->inbox = 20;
	group->other = 3;
	group->size = 3000;
	group->big_size = 1000000;
	STAILQ_INSERT_TAIL(&world->groups, group, entry);
	return group;
}

static struct group *
find_group(const struct world *world, const char *login)
{
	struct group *group, *found = NULL;

	STAILQ_FOREACH(group, &world->groups, entry)
		if (fnmatch(group->match, login, 0) == 0)
			found = group;
	return found;
}

static size_t
hash(const char *login)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325);

	for (; *login != '\0'; login++)
		x = (x ^ (unsigned char)*login) * UINT64_C(0x100000001b3);
	return (size_t)(x ^ (x >> 32));
}

/* Open addressing; nothing is ever taken out. */
static struct account **
find_place(struct account **table, size_t size, const char *login)
{
	size_t i = hash(login) & (size - 1);

	while (table[i] != NULL && strcmp(table[i]->login, login) != 0)
		i = (i + 1) & (size - 1);
	return &table[i];
}

static void
grow_table(struct world *world)
{
	size_t size = world->table_size * 2;
	struct account **table = xcalloc(size, sizeof(*table));

	for (size_t i = 0; i < world->n_accounts; i++)
		*find_place(table, size, world->accounts[i]->login) =
		    world->accounts[i];
	free(world->table);
	world->table = table;
	world->table_size = size;
}

static struct account *
account_new(struct world *world, struct group *group, const char *login)
{
	struct account *account = xcalloc(1, sizeof(*account));

	account->world = world;
	account->group = group;
	account->login = xstrdup(login);
	account->last_uidvalidity = 1000;
	LIST_INIT(&account->sessions);
	GROW(world->accounts, world->n_accounts, world->cap_accounts);
	world->accounts[world->n_accounts++] = account;
	if (world->n_accounts * 2 > world->table_size)
		grow_table(world);
	else
		*find_place(world->table, world->table_size, login) = account;
	mailbox_furnish(account);
	return account;
}

static bool
is_login(const char *login)
{
	size_t len = strlen(login);

	for (size_t i = 0; i < len; i++)
		if (login[i] <= ' ' || login[i] == 0x7f)
			return false;
	return len > 0 && len <= LOGIN_MAX;
}

struct account *
world_account(struct world *world, const char *login)
{
	struct account *account =
	    *find_place(world->table, world->table_size, login);
	struct group *group;

	if (account != NULL)
		return account;
	group = find_group(world, login);
	if (group == NULL || !is_login(login))
		return NULL;
	return account_new(world, group, login);
}

bool
account_is_password(const struct account *account, const char *password)
{
	const char *right = account->password != NULL ? account->password :
	    account->group->password;

	return strcmp(right, password) == 0;
}

void
world_release(struct world *world)
{
	struct group *group;

	for (size_t i = 0; i < world->n_accounts; i++) {
		struct account *account = world->accounts[i];

		while (account->n_folders > 0)
			folder_remove(account->folders[0]);
		free(account->folders);
		free(account->login);
		free(account->password);
		free(account);
	}
	free(world->accounts);
	free(world->table);
	while ((group = STAILQ_FIRST(&world->groups)) != NULL) {
		STAILQ_REMOVE_HEAD(&world->groups, entry);
		free(group);
	}
}
