/*
 * subject_prefixes.h - what programs write before the subject they answer or
 * forward, by language, in small letters.
 *
 * Sources: the table "Abbreviations in other languages" of Wikipedia's "List of
 * email subject abbreviations", and below it what mail programs and services of
 * a country write (Outlook, Lotus Notes, The Bat!, Seznam, 163.com, QQ, Naver,
 * Yahoo! Japan) as seen in mail.  Where two languages mean different things by
 * one word (vs, pd) a reply is assumed: it only allows a thread, it makes none.
 */
static const struct prefix {
	const char text[32];
	bool is_reply;
} prefixes[] = {
	/* English, and what everybody uses */
	{ "re", true }, { "fw", false }, { "fwd", false }, { "reply", true },
	{ "forward", false }, { "forwarded", false },
	/* Albanian */
	{ "përgj", true }, { "përc", false },
	/* Arabic */
	{ "رد", true }, { "الرد", true }, { "إعادة توجيه", false },
	{ "تحويل", false },
	/* Catalan, Galician */
	{ "resp", true }, { "reenv", false },
	/* Bulgarian */
	{ "отг", true }, { "отговор", true }, { "прп", false },
	{ "препр", false },
	/* Chinese */
	{ "回复", true }, { "回覆", true }, { "答复", true }, { "答覆", true },
	{ "回信", true }, { "回應", true }, { "转发", false },
	{ "转寄", false }, { "轉寄", false }, { "轉發", false },
	{ "自动回复", true }, { "自動回覆", true },
	/* Czech, Slovak */
	{ "odp", true }, { "odpověď", true }, { "odpoveď", true },
	{ "předat", false }, { "přeposláno", false }, { "přep", false },
	{ "preposlané", false },
	/* Danish, Norwegian, Swedish, Icelandic, Faroese */
	{ "sv", true }, { "svar", true }, { "vs", true }, { "vb", false },
	{ "vbf", false }, { "videresendt", false }, { "videresend", false },
	{ "vidarebefordrat", false }, { "fs", false },
	{ "áframsent", false }, { "svr", true },
	/* Dutch, Afrikaans */
	{ "antw", true }, { "antwoord", true }, { "betr", true },
	{ "doorst", false }, { "doorgest", false },
	/* Estonian */
	{ "vast", true }, { "vastus", true }, { "edasi", false },
	{ "edastatud", false },
	/* Finnish */
	{ "vl", false }, { "vastaus", true }, { "välitetty", false },
	{ "lähetetty edelleen", false },
	/* French */
	{ "ref", true }, { "réf", true }, { "rép", true },
	{ "ré", true }, { "réponse", true }, { "tr", false }, { "tf", false },
	{ "transf", false }, { "transféré", false }, { "rvf", false },
	/* German */
	{ "aw", true }, { "antwort", true }, { "wg", false },
	{ "weitergeleitet", false }, { "wtrlt", false },
	/* Greek */
	{ "απ", true }, { "απάντ", true }, { "απάντηση", true },
	{ "σχετ", true }, { "πρθ", false }, { "προώθ", false },
	{ "προώθηση", false },
	/* Hebrew */
	{ "השב", true }, { "תשובה", true }, { "תגובה", true },
	{ "תש", true }, { "העברה", false }, { "הועבר", false },
	/* Hindi */
	{ "उत्तर", true }, { "अग्रेषित", false },
	/* Hungarian */
	{ "vá", true }, { "válasz", true }, { "továbbítás", false },
	{ "továbbítva", false }, { "továbbít", false }, { "tov", false },
	/* Indonesian, Malay */
	{ "bls", true }, { "balas", true }, { "trs", false },
	{ "terusan", false },
	/* Welsh */
	{ "atb", true }, { "yml", false },
	/* Italian */
	{ "r", true }, { "rif", true }, { "risp", true }, { "i", false },
	{ "inoltro", false }, { "inol", false },
	/* Japanese */
	{ "返信", true }, { "転送", false }, { "回答", true },
	/* Korean */
	{ "회신", true }, { "답장", true }, { "답변", true },
	{ "전달", false },
	/* Latvian, Lithuanian */
	{ "atbilde", true }, { "pārs", false }, { "pārsūtīts", false },
	{ "ats", true }, { "ats.", true }, { "atsakymas", true },
	{ "persiųsta", false },
	/* Persian, Urdu */
	{ "پاسخ", true }, { "تر", true }, { "ارسال", false },
	{ "هدایت", false }, { "جواب", true },
	/* Polish */
	{ "odpowiedź", true }, { "pd", false }, { "przekazane", false },
	{ "przek", false },
	/* Portuguese */
	{ "res", true }, { "resposta", true }, { "enc", false },
	{ "encaminhado", false }, { "encam", false },
	/* Romanian */
	{ "răsp", true }, { "rsp", true }, { "răspuns", true },
	{ "redirecționat", false }, { "redir", false },
	/* Russian, Ukrainian, Belarusian */
	{ "ответ", true }, { "отв", true }, { "на", true },
	{ "пересл", false }, { "пер", false }, { "переслано", false },
	{ "пересылка", false }, { "відп", true }, { "відповідь", true },
	{ "переслати", false }, { "адказ", true },
	/* Serbian, Croatian, Slovenian, Macedonian */
	{ "odg", true }, { "odgovor", true }, { "одг", true },
	{ "одговор", true }, { "proslj", false },
	{ "posr", false }, { "posredovano", false }, { "прос", false },
	{ "препрати", false },
	/* Spanish */
	{ "rv", false }, { "reenviado", false }, { "rta", true },
	{ "respuesta", true },
	/* Thai */
	{ "ตอบ", true }, { "ตอบกลับ", true }, { "ส่งต่อ", false },
	/* Turkish, Azerbaijani */
	{ "ynt", true }, { "yanıt", true }, { "cevap", true },
	{ "ilt", false }, { "ilet", false }, { "cvb", true },
	{ "iletilen", false },
	/* Vietnamese */
	{ "trả lời", true }, { "chuyển tiếp", false },
};
