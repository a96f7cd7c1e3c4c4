"""Writes sample.parquet, the sample of the README's main command: `python
tests/data/make_sample.py`.

Columns id (int64), text (string, one null and one empty row), lang (BCP 47, or what it is). Every
text was written for this file and has no other source. The file is byte for byte the same on every
run of one pyarrow version.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent

ROWS: list[tuple[str, str | None]] = [
    (
        "en",
        "The ferry was late again, so we counted gulls on the railing until someone lost patience.",
    ),
    (
        "en",
        "It's odd: she'd said they'll come, he's sure we've time, and I'm told you're early. "
        "Nobody'd asked what'd happen if it rained.",
    ),
    ("en", "IT'S LOUD IN HERE, ISN'T IT? Don’t shout — they’re listening; it’s only a rehearsal."),
    (
        "en",
        "A list of small things found in a coat pocket: two receipts, a bus ticket (torn), one "
        "button, half a pencil and the address of a bakery that is now a bicycle shop.\n\n"
        "The coat itself was found in 1997, at 10:45 on a Tuesday.\n",
    ),
    ("en", "  Two spaces before, three   inside, a tab\there, and some after the end.   "),
    ("en", "Line one\nLine two\r\nLine three\r\n\r\n\tindented\n \n  \nlast line\n\n\n"),
    (
        "de",
        "Über den Dächern von Görlitz hing der Nebel; die Größe des Platzes ließ sich nur erahnen.",
    ),
    ("de", "Donaudampfschifffahrtsgesellschaftskapitänsmützenhersteller suchen Aushilfen (m/w/d)."),
    (
        "fr",
        "L’été dernier, j’ai appris à naviguer sans carte : c’était, disons-le, un échec complet.",
    ),
    ("es", "¿Cuándo llega el tren? ¡Ojalá antes de que cierre la panadería de la señora Ibáñez!"),
    (
        "pt",
        "A maçã caiu no chão e ninguém quis apanhá-la; às vezes a preguiça é uma decisão coletiva.",
    ),
    ("it", "Perché c'è così poca luce? L'elettricista dell'ufficio dice che verrà dopodomani."),
    (
        "nl",
        "De reünie was gezellig, maar het ijs smolt sneller dan de toespraak van 's morgens vroeg.",
    ),
    ("pl", "Żółty rower stał pod ścianą, a gęś przyglądała mu się z wyraźną podejrzliwością."),
    ("cs", "Příliš mnoho otázek a žádný čaj: tak končí každé úterní setkání našeho spolku."),
    ("hu", "Az őszi eső megtöltötte a hordót, úgyhogy egy hétig nem kellett a kúthoz járni."),
    (
        "fi",
        "Järven jää kesti vielä viikon, vaikka aurinko paistoi jo lämpimästi kuin huhtikuussa.",
    ),
    (
        "tr",
        "İstanbul'da sabah sisi dağılınca ışıklar söndü; ığıl ığıl bir ırmak gibi aktı kalabalık.",
    ),
    (
        "vi",
        "Buổi sáng ở chợ nổi, người ta bán cả dưa hấu lẫn những câu chuyện không ai kiểm chứng.",
    ),
    ("is", "Þegar snjórinn bráðnaði fannst lykillinn undir tröppunum, ryðgaður en heill."),
    ("ru", "Вечером ветер стих, и стало слышно, как на другом берегу чинят лодку и спорят о рыбе."),
    ("uk", "Їжак з’їв грушу й пішов далі, ніби ґанок завжди належав саме йому."),
    ("bg", "Старият часовник избързва с пет минути, но всички вече са свикнали с това."),
    ("el", "Το καΐκι γύρισε άδειο, αλλά ο καπετάνιος γελούσε: «Αύριο», είπε, «θα δούμε»."),
    ("hy", "Այգում երեք ծառ կա, և երեքն էլ ծաղկում են տարբեր ամիսների։"),
    ("ka", "მთაში თოვლი ჯერ კიდევ იდო, როცა ბაღში ატამი აყვავდა."),
    ("he", "הספרייה נסגרת בשש, אבל השומר תמיד מחכה עוד רבע שעה למי שמחפש ספר אחרון."),
    ("ar", "وصلَ القطارُ متأخِّرًا ثلاثَ ساعات، فشربنا الشاي ٤ مرّات وتحدّثنا عن المطر."),
    ("fa", "او می‌خواهد کتاب‌ها را بچیند، اما قفسه‌ها هنوز از ۱۲ جعبه بیرون نیامده‌اند."),
    ("ur", "بارش کے بعد گلی میں بچّوں نے کاغذ کی کشتیاں چلائیں۔"),
    ("hi", "बारिश के बाद छत पर बैठकर हमने चाय पी और पड़ोसी की पतंग कटते देखी। उस दिन तारीख़ थी १५।"),
    ("bn", "নদীর ধারে একটা পুরনো নৌকা পড়ে আছে, তার ভেতরে এখন বেড়ালের সংসার।"),
    ("ta", "மழை நின்றதும் தெருவில் காகிதக் கப்பல்கள் மிதந்தன; யாருடையது முதலில் சென்றது?"),
    ("te", "మా ఊరి చెరువు దగ్గర ప్రతి సాయంత్రం కొంగలు వరుసగా నిలబడతాయి."),
    ("th", "เช้านี้ตลาดเงียบผิดปกติ แม่ค้าขายดอกไม้บอกว่าทุกคนไปดูเรือแข่งกันหมด ๒๓ ลำ"),
    ("km", "ព្រឹកនេះ ទូកមួយបានមកដល់កំពង់ផែ ដោយគ្មានអ្នកណារង់ចាំ។"),
    ("my", "မိုးရွာပြီးတော့ လမ်းပေါ်မှာ ဖားလေးတွေ ခုန်နေကြတယ်။"),
    ("am", "ትናንት ማታ ጨረቃ በጣም ደማቅ ስለነበረች መብራት አላስፈለገንም።"),
    (
        "zh-Hans",
        "昨天晚上停电了，我们点着蜡烛下完了那盘棋，结果谁也记不清该谁走。共用了3小时20分。",
    ),
    ("zh-Hant", "雨停之後，巷口的麵店重新開張，老闆說湯頭還是十二年前的那一鍋。"),
    (
        "ja",
        "駅前のパン屋は朝六時に開く。カレーパンは二百四十円で、いつも七時までに売り切れてしまう。",
    ),
    ("ja", "ﾊﾝｶｸ カタカナ と ｆｕｌｌ－ｗｉｄｔｈ、「かぎ括弧」も・中黒も、１２３も。"),
    ("ko", "우산을 두고 나왔더니 역시 비가 왔다. 그래도 버스 42번은 제시간에 도착했다."),
    ("mixed", "Der Zug nach 東京 fährt um 18:05 ab, сказал он, and nobody believed him: ¡qué va!"),
    (
        "emoji",
        "Packing list 🧳: ☕️, 👟👟, 📚x3, 🏳️‍🌈, 👩🏽‍🚀 and one 👨‍👩‍👧‍👦 photo. "
        "Weather: 🌧️→☀️ 🤞🏿!!! 🇮🇸🇯🇵",
    ),
    ("marks", "Zalgo-ish: ḩ̷̛é̵̢l̶̨̛l̷o̸̡; decomposed: cafe\u0301 vs composed: café; Å = Å = A\u030a."),
    (
        "digits",
        "0 1 12 123 1234 12345 3.14159 1,000,000 0x7fff 1e-9 ½ ² ³ Ⅳ ① ٣ ५ ７ 2026-11-30T01:02:03Z",
    ),
    ("symbols", "±√2 ≠ ∞ ∑ᵢ xᵢ² → ∀ε>0 ∃δ: |x−a|<δ ⇒ |f(x)−f(a)|<ε … ‰ € £ ¥ ₿ © ® ™ § ¶ † ‡"),
    (
        "spaces",
        "no-break\u00a0space, thin\u2009space, ideographic\u3000space, line\u2028separator, "
        "zero\u200bwidth, next\u0085line, em\u2003space, ogham\u1680mark, bom\ufeff",
    ),
    (
        "python",
        "def tally(words: list[str]) -> dict[str, int]:\n"
        '    """How often each word occurs, case folded."""\n'
        "    seen: dict[str, int] = {}\n"
        "    for word in words:\n"
        "        key = word.casefold()\n"
        "        seen[key] = seen.get(key, 0) + 1\n"
        "    return seen\n\n\n"
        "if __name__ == '__main__':\n"
        "    print(tally('one two One'.split()))  # {'one': 2, 'two': 1}\n",
    ),
    (
        "c",
        "#include <stdio.h>\n\nint main(void) {\n\tfor (int i = 0; i < 3; ++i) {\n"
        '\t\tprintf("%d: 0x%08x\\n", i, ~i & 0xff);\n\t}\n\treturn 0;\n}\n',
    ),
    (
        "sql",
        "SELECT town, COUNT(*) AS n\n  FROM visits v\n  JOIN towns t USING (town_id)\n"
        " WHERE v.day >= '2024-02-29' AND t.name LIKE 'Sankt %'\n GROUP BY 1 HAVING COUNT(*) > 9;",
    ),
    ("json", '{"id": 17, "tags": ["a", "b\\u00e9"], "ok": true, "ratio": -0.25e+3, "none": null}'),
    (
        "html",
        '<ul class="menu">\n  <li><a href="/soup?size=L&amp;hot=1">Soup</a></li>\n'
        "  <li>Bread &mdash; fresh</li>\n</ul>",
    ),
    (
        "markdown",
        "# Repairing a bicycle bell\n\n1. Unscrew the **dome** (counter-clockwise).\n"
        "2. Clean the _spring_; don't lose the `M4` nut!\n\n> It rings, or it doesn't.\n\n"
        "| part | price |\n|------|------:|\n| nut  |  0.10 |\n\n```sh\nring --times 3\n```\n\n"
        "See [the notes](./notes.md#springs) and https://example.org/bells?q=dome&lang=en_GB.\n",
    ),
    ("control", "A document that mentions <|endoftext|> in its text, and <|im_start|> as well."),
    (
        "names",
        "camelCaseWords snake_case_words SCREAMING_CASE kebab-case v2.0.1-rc3 e.g. U.S.A. O'Neill",
    ),
    (
        "long-runs",
        "a" * 60 + " " * 40 + "=" * 50 + "\n" * 12 + "1" * 45 + "é" * 30 + "字" * 30 + "!?" * 20,
    ),
    ("empty", ""),
    ("null", None),
    ("space", " "),
    ("en", "The end, without a full stop"),
]


def table() -> pa.Table:
    """The sample as a table of columns id, text, lang."""
    return pa.table(
        {
            "id": pa.array(range(1, len(ROWS) + 1), pa.int64()),
            "text": pa.array([text for _, text in ROWS], pa.string()),
            "lang": pa.array([lang for lang, _ in ROWS], pa.string()),
        }
    )


if __name__ == "__main__":
    pq.write_table(table(), HERE / "sample.parquet", compression="zstd")
