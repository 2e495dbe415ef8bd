/*
 * roles.c - which folder is Sent, Drafts, ...
 *
 * Runs in: whoever syncs.  Pure.
 *
 * A server's word (SPECIAL-USE) comes before any name, and a folder has one
 * role: a name rule of another language once took \Drafts for Trash (L067).
 * Many servers say nothing, in any language (L068): hence the table.
 */
#include "sync/roles.h"

#include "sync/wires.h"

#include <strings.h>

struct known_name {
	enum folder_role role;
	const char *name;
};

/* The first of a role that is found wins. */
static const struct known_name known_names[] = {
	{ ROLE_SENT, "Sent" },
	{ ROLE_SENT, "Sent Items" },
	{ ROLE_SENT, "Sent Messages" },
	{ ROLE_SENT, "Sent Mail" },
	{ ROLE_SENT, "Sent-Mail" },
	{ ROLE_SENT, "Gesendet" },
	{ ROLE_SENT, "Gesendete Elemente" },
	{ ROLE_SENT, "Gesendete Objekte" },
	{ ROLE_SENT, "Gesendete Nachrichten" },
	{ ROLE_SENT, "Éléments envoyés" },
	{ ROLE_SENT, "Messages envoyés" },
	{ ROLE_SENT, "Envoyés" },
	{ ROLE_SENT, "Courrier envoyé" },
	{ ROLE_SENT, "Enviados" },
	{ ROLE_SENT, "Elementos enviados" },
	{ ROLE_SENT, "Mensajes enviados" },
	{ ROLE_SENT, "Itens enviados" },
	{ ROLE_SENT, "Mensagens enviadas" },
	{ ROLE_SENT, "Enviadas" },
	{ ROLE_SENT, "Posta inviata" },
	{ ROLE_SENT, "Inviati" },
	{ ROLE_SENT, "Inviata" },
	{ ROLE_SENT, "Verzonden" },
	{ ROLE_SENT, "Verzonden items" },
	{ ROLE_SENT, "Verzonden berichten" },
	{ ROLE_SENT, "Wysłane" },
	{ ROLE_SENT, "Elementy wysłane" },
	{ ROLE_SENT, "Отправленные" },
	{ ROLE_SENT, "Отправленная почта" },
	{ ROLE_SENT, "Надіслані" },
	{ ROLE_SENT, "Відправлені" },
	{ ROLE_SENT, "Odeslané" },
	{ ROLE_SENT, "Odeslaná pošta" },
	{ ROLE_SENT, "Odoslané" },
	{ ROLE_SENT, "Elküldött" },
	{ ROLE_SENT, "Elküldött elemek" },
	{ ROLE_SENT, "Trimise" },
	{ ROLE_SENT, "Elemente trimise" },
	{ ROLE_SENT, "Skickat" },
	{ ROLE_SENT, "Skickade objekt" },
	{ ROLE_SENT, "Sendt" },
	{ ROLE_SENT, "Sendte elementer" },
	{ ROLE_SENT, "Sendt post" },
	{ ROLE_SENT, "Lähetetyt" },
	{ ROLE_SENT, "Gönderilmiş Öğeler" },
	{ ROLE_SENT, "Gönderilmiş Postalar" },
	{ ROLE_SENT, "Gönderilenler" },
	{ ROLE_SENT, "Απεσταλμένα" },
	{ ROLE_SENT, "送信済み" },
	{ ROLE_SENT, "送信済みメール" },
	{ ROLE_SENT, "送信済みアイテム" },
	{ ROLE_SENT, "已发送" },
	{ ROLE_SENT, "已发送邮件" },
	{ ROLE_SENT, "寄件備份" },
	{ ROLE_SENT, "보낸 편지함" },
	{ ROLE_SENT, "보낸편지함" },

	{ ROLE_DRAFTS, "Drafts" },
	{ ROLE_DRAFTS, "Draft" },
	{ ROLE_DRAFTS, "Entwürfe" },
	{ ROLE_DRAFTS, "Entwurf" },
	{ ROLE_DRAFTS, "Brouillons" },
	{ ROLE_DRAFTS, "Brouillon" },
	{ ROLE_DRAFTS, "Borradores" },
	{ ROLE_DRAFTS, "Borrador" },
	{ ROLE_DRAFTS, "Rascunhos" },
	{ ROLE_DRAFTS, "Rascunho" },
	{ ROLE_DRAFTS, "Bozze" },
	{ ROLE_DRAFTS, "Concepten" },
	{ ROLE_DRAFTS, "Kopie robocze" },
	{ ROLE_DRAFTS, "Wersje robocze" },
	{ ROLE_DRAFTS, "Szkice" },
	{ ROLE_DRAFTS, "Черновики" },
	{ ROLE_DRAFTS, "Чернетки" },
	{ ROLE_DRAFTS, "Koncepty" },
	{ ROLE_DRAFTS, "Rozepsané" },
	{ ROLE_DRAFTS, "Piszkozatok" },
	{ ROLE_DRAFTS, "Schițe" },
	{ ROLE_DRAFTS, "Ciorne" },
	{ ROLE_DRAFTS, "Utkast" },
	{ ROLE_DRAFTS, "Kladder" },
	{ ROLE_DRAFTS, "Luonnokset" },
	{ ROLE_DRAFTS, "Taslaklar" },
	{ ROLE_DRAFTS, "Πρόχειρα" },
	{ ROLE_DRAFTS, "下書き" },
	{ ROLE_DRAFTS, "草稿" },
	{ ROLE_DRAFTS, "草稿箱" },
	{ ROLE_DRAFTS, "임시 보관함" },
	{ ROLE_DRAFTS, "임시보관함" },

	{ ROLE_TRASH, "Trash" },
	{ ROLE_TRASH, "Deleted Items" },
	{ ROLE_TRASH, "Deleted Messages" },
	{ ROLE_TRASH, "Deleted" },
	{ ROLE_TRASH, "Bin" },
	{ ROLE_TRASH, "Papierkorb" },
	{ ROLE_TRASH, "Gelöscht" },
	{ ROLE_TRASH, "Gelöschte Elemente" },
	{ ROLE_TRASH, "Gelöschte Objekte" },
	{ ROLE_TRASH, "Corbeille" },
	{ ROLE_TRASH, "Éléments supprimés" },
	{ ROLE_TRASH, "Messages supprimés" },
	{ ROLE_TRASH, "Papelera" },
	{ ROLE_TRASH, "Elementos eliminados" },
	{ ROLE_TRASH, "Lixeira" },
	{ ROLE_TRASH, "Lixo" },
	{ ROLE_TRASH, "Itens excluídos" },
	{ ROLE_TRASH, "Cestino" },
	{ ROLE_TRASH, "Posta eliminata" },
	{ ROLE_TRASH, "Prullenbak" },
	{ ROLE_TRASH, "Prullenmand" },
	{ ROLE_TRASH, "Verwijderde items" },
	{ ROLE_TRASH, "Kosz" },
	{ ROLE_TRASH, "Elementy usunięte" },
	{ ROLE_TRASH, "Корзина" },
	{ ROLE_TRASH, "Удаленные" },
	{ ROLE_TRASH, "Удалённые" },
	{ ROLE_TRASH, "Кошик" },
	{ ROLE_TRASH, "Koš" },
	{ ROLE_TRASH, "Odstraněná pošta" },
	{ ROLE_TRASH, "Kôš" },
	{ ROLE_TRASH, "Kuka" },
	{ ROLE_TRASH, "Törölt elemek" },
	{ ROLE_TRASH, "Coș de gunoi" },
	{ ROLE_TRASH, "Elemente șterse" },
	{ ROLE_TRASH, "Papperskorgen" },
	{ ROLE_TRASH, "Borttaget" },
	{ ROLE_TRASH, "Papirkurv" },
	{ ROLE_TRASH, "Slettet post" },
	{ ROLE_TRASH, "Slettede elementer" },
	{ ROLE_TRASH, "Roskakori" },
	{ ROLE_TRASH, "Poistetut" },
	{ ROLE_TRASH, "Çöp Kutusu" },
	{ ROLE_TRASH, "Çöp" },
	{ ROLE_TRASH, "Silinmiş Öğeler" },
	{ ROLE_TRASH, "Κάδος" },
	{ ROLE_TRASH, "ゴミ箱" },
	{ ROLE_TRASH, "削除済みアイテム" },
	{ ROLE_TRASH, "已删除" },
	{ ROLE_TRASH, "已删除邮件" },
	{ ROLE_TRASH, "垃圾桶" },
	{ ROLE_TRASH, "휴지통" },

	{ ROLE_JUNK, "Junk" },
	{ ROLE_JUNK, "Spam" },
	{ ROLE_JUNK, "Junk E-mail" },
	{ ROLE_JUNK, "Junk Email" },
	{ ROLE_JUNK, "Junk Mail" },
	{ ROLE_JUNK, "Bulk Mail" },
	{ ROLE_JUNK, "Bulk" },
	{ ROLE_JUNK, "Spamverdacht" },
	{ ROLE_JUNK, "Unerwünscht" },
	{ ROLE_JUNK, "Unerwünschte Werbung" },
	{ ROLE_JUNK, "Courrier indésirable" },
	{ ROLE_JUNK, "Indésirables" },
	{ ROLE_JUNK, "Pourriel" },
	{ ROLE_JUNK, "Correo no deseado" },
	{ ROLE_JUNK, "Correo basura" },
	{ ROLE_JUNK, "Lixo eletrônico" },
	{ ROLE_JUNK, "Posta indesiderata" },
	{ ROLE_JUNK, "Indesiderata" },
	{ ROLE_JUNK, "Ongewenste e-mail" },
	{ ROLE_JUNK, "Niechciane" },
	{ ROLE_JUNK, "Wiadomości-śmieci" },
	{ ROLE_JUNK, "Спам" },
	{ ROLE_JUNK, "Нежелательная почта" },
	{ ROLE_JUNK, "Nevyžádaná pošta" },
	{ ROLE_JUNK, "Nevyžiadaná pošta" },
	{ ROLE_JUNK, "Levélszemét" },
	{ ROLE_JUNK, "Skräppost" },
	{ ROLE_JUNK, "Søppelpost" },
	{ ROLE_JUNK, "Uønsket e-post" },
	{ ROLE_JUNK, "Roskaposti" },
	{ ROLE_JUNK, "Önemsiz" },
	{ ROLE_JUNK, "Gereksiz" },
	{ ROLE_JUNK, "Ανεπιθύμητα" },
	{ ROLE_JUNK, "迷惑メール" },
	{ ROLE_JUNK, "垃圾邮件" },
	{ ROLE_JUNK, "垃圾郵件" },
	{ ROLE_JUNK, "스팸" },
	{ ROLE_JUNK, "스팸메일함" },

	{ ROLE_ARCHIVE, "Archive" },
	{ ROLE_ARCHIVE, "Archives" },
	{ ROLE_ARCHIVE, "Archiv" },
	{ ROLE_ARCHIVE, "Archivo" },
	{ ROLE_ARCHIVE, "Archivio" },
	{ ROLE_ARCHIVE, "Arquivo" },
	{ ROLE_ARCHIVE, "Archief" },
	{ ROLE_ARCHIVE, "Archiwum" },
	{ ROLE_ARCHIVE, "Архив" },
	{ ROLE_ARCHIVE, "Архів" },
	{ ROLE_ARCHIVE, "Archív" },
	{ ROLE_ARCHIVE, "Archívum" },
	{ ROLE_ARCHIVE, "Arhivă" },
	{ ROLE_ARCHIVE, "Arkiv" },
	{ ROLE_ARCHIVE, "Arkisto" },
	{ ROLE_ARCHIVE, "Arşiv" },
	{ ROLE_ARCHIVE, "Αρχείο" },
	{ ROLE_ARCHIVE, "アーカイブ" },
	{ ROLE_ARCHIVE, "归档" },
	{ ROLE_ARCHIVE, "보관함" },

	{ ROLE_ALL, "All Mail" },
	{ ROLE_ALL, "Alle Nachrichten" },
	{ ROLE_ALL, "Tous les messages" },
	{ ROLE_ALL, "Todos" },
	{ ROLE_ALL, "Tutti i messaggi" },
	{ ROLE_ALL, "Вся почта" },
};

#define N_KNOWN (sizeof(known_names) / sizeof(known_names[0]))
#define RANK_NONE UINT32_MAX

bool
is_inbox_name(const char *wire)
{
	return strcasecmp(wire, "INBOX") == 0;
}

/*
 * The last part of a path that may name a special folder: at the top, or
 * right below INBOX or the [Gmail] of Google.  "Projects/Archive" is only a
 * folder of the user's.
 */
static const char *
special_part(const char *path, char delimiter)
{
	static const char *const parents[] = { "INBOX", "[Gmail]",
		"[Google Mail]" };
	const char *end;
	size_t i, len;

	if (delimiter == '\0' || (end = strchr(path, delimiter)) == NULL)
		return path;
	len = (size_t)(end - path);
	for (i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		if (strlen(parents[i]) == len &&
		    strncasecmp(path, parents[i], len) == 0 &&
		    strchr(end + 1, delimiter) == NULL)
			return end + 1;
	return NULL;
}

static enum folder_role
role_parse(const char *name)
{
	int role;

	for (role = ROLE_INBOX; role < FOLDER_ROLE_COUNT; role++)
		if (strcasecmp(name, folder_role_name(role)) == 0)
			return role;
	return ROLE_NONE;
}

enum folder_role
role_by_name(const struct conf *conf, const char *path, char delimiter,
    unsigned *rank_r)
{
	const char *part = special_part(path, delimiter);
	size_t i, n = conf == NULL ? 0 : conf->n_folder_names;

	for (i = 0; i < n; i++) {
		const struct conf_folder_name *fn = &conf->folder_names[i];

		if (strcasecmp(fn->name, path) == 0 ||
		    (part != NULL && strcasecmp(fn->name, part) == 0)) {
			*rank_r = (unsigned)i;
			return role_parse(fn->role);
		}
	}
	for (i = 0; part != NULL && i < N_KNOWN; i++)
		if (strcasecmp(known_names[i].name, part) == 0) {
			*rank_r = (unsigned)(n + i);
			return known_names[i].role;
		}
	*rank_r = RANK_NONE;
	return ROLE_NONE;
}

/* What speaks for a role of one listed folder. */
struct claim {
	enum folder_role held;	  /* has it here already */
	enum folder_role by_name; /* ROLE_NONE: none, or a flag says another */
	unsigned rank;
};

/* SPECIAL-USE: of several claims the holder's, else the first in the LIST. */
static void
assign_by_flag(enum folder_role role, const struct imap_folder *listed,
    size_t n_listed, const struct claim *claims, enum folder_role *role_r)
{
	size_t i, best = n_listed;

	for (i = 0; i < n_listed; i++) {
		if (listed[i].role != role || !listed[i].is_selectable ||
		    role_r[i] != ROLE_NONE)
			continue;
		if (claims[i].held == role) {
			best = i;
			break;
		}
		if (best == n_listed)
			best = i;
	}
	if (best < n_listed)
		role_r[best] = role;
}

static void
assign_by_name(enum folder_role role, size_t n_listed,
    const struct claim *claims, enum folder_role *role_r)
{
	unsigned best_rank = RANK_NONE;
	size_t i, best = n_listed;

	for (i = 0; i < n_listed; i++)
		if (role_r[i] == role)
			return; /* a flag gave it away */
	for (i = 0; i < n_listed; i++) {
		if (role_r[i] != ROLE_NONE || claims[i].by_name != role)
			continue;
		if (claims[i].held == role) {
			best = i;
			break;
		}
		if (claims[i].rank < best_rank) {
			best = i;
			best_rank = claims[i].rank;
		}
	}
	if (best < n_listed)
		role_r[best] = role;
}

/* Once for all roles: a list may be long. */
static struct claim *
read_claims(struct arena *arena, const struct conf *conf,
    const struct imap_folder *listed, size_t n_listed,
    const struct folder *local, size_t n_local)
{
	struct claim *claims = ARENA_ARRAY(arena, struct claim, n_listed + 1);
	struct wires wires = WIRES_OF(arena, local, n_local);
	size_t i, at;

	for (i = 0; i < n_listed; i++) {
		at = wires_find(&wires, listed[i].wire);
		if (at != WIRES_NONE)
			claims[i].held = local[at].role;
		if (listed[i].is_selectable && listed[i].role == ROLE_NONE)
			claims[i].by_name = role_by_name(conf, listed[i].path,
			    listed[i].delimiter, &claims[i].rank);
	}
	return claims;
}

void
roles_assign(struct arena *arena, const struct conf *conf,
    const struct imap_folder *listed, size_t n_listed,
    const struct folder *local, size_t n_local, enum folder_role *role_r)
{
	struct claim *claims = read_claims(arena, conf, listed, n_listed,
	    local, n_local);
	bool has_inbox = false;
	int role;
	size_t i;

	for (i = 0; i < n_listed; i++) {
		role_r[i] = ROLE_NONE;
		if (!has_inbox && is_inbox_name(listed[i].wire)) {
			role_r[i] = ROLE_INBOX;
			has_inbox = true;
		}
	}
	for (role = ROLE_SENT; role < FOLDER_ROLE_COUNT; role++)
		assign_by_flag(role, listed, n_listed, claims, role_r);
	for (role = ROLE_SENT; role < FOLDER_ROLE_COUNT; role++)
		assign_by_name(role, n_listed, claims, role_r);
}
