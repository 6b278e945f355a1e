"""Stop words: those of English, which the weights of the built-in embedder and digests without a model go by too, and
those of other languages, by which a text also tells its language."""

from __future__ import annotations

_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be because been before being both but by can cant could
    couldnt did didnt do does doesnt doing dont down during each ever every few for from further get gets getting got
    had hadnt has hasnt have havent having he her here hers herself him himself his how i if in into is isnt it its
    itself just let many me might more most much must my myself no nor not now of off on once one only or other our
    ours ourselves out over own please same shall she should shouldnt so some such tell than that the their theirs
    them themselves then there these they this those through to too under until up us very was wasnt we were werent
    what whats when where whether which while who whom whose why will with without wont would wouldnt yet you your
    yours yourself yourselves
"""

_OF_CONVERSATION = """
    discuss discussed discussing earlier mention mentioned mentioning mentions previously recall recalled remember
    remind reminded said say saying says talk talked talking talks telling tells told
"""
"""Questions to a memory have these words, whatever they are about."""

STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), *_OF_CONVERSATION.split()])

GREETINGS = frozenset({"thanks", "thank", "please", "sorry", "ok", "okay", "hi", "hello", "hey", "bye"})
"""Words around a request, whatever it is about: they are looked for only where there is nothing else."""

POLITE_WORDS = GREETINGS | {"sure", "cool", "great", "nice", "wow", "yes", "no", "yeah", "yep", "nope"}
"""Words of greetings and short answers: a match on them alone says nothing."""

OF_LANGUAGES = {
    "spanish": """
        a al algo algún alguna con como cómo cual cuál cuáles cuando cuándo cuánta cuántas cuánto cuántos de del
        desde donde dónde e el él ella ellas ellos en entre era es esa ese eso esta está están este esto estoy
        fue fueron ha haber había han has hay he hemos la las le les lo los me mi mis más muy nada ni no nos
        nosotros nuestra nuestro o os para pero por porque qué que quién quien quiénes se sea ser si sí sin
        sobre son soy su sus también te tengo ti tiene tu tus un una unas uno unos usted y ya yo
        """,
    "portuguese": """
        a ao aos as até com como da das de do dos e é ela elas ele eles em era essa esse esta está este eu foi
        foram há isso já lhe mais mas me meu meus minha minhas na nas não no nos nós nossa nosso o onde os ou
        para pela pelo por porque quais qual quando quanto quantos quanta quantas que quem são se sem ser seu
        sua só sobre também te tem tenho teu tua um uma você vou
        """,
    "french": """
        ai ait as au aux avec avez avons c ce cela ces cet cette combien comme comment d dans de depuis des dois
        doit du elle elles en es est et étaient était été être eu faut fait il ils j je l la là le les leur
        leurs lui m ma mais me même mes moi mon n ne nos notre nous on ont où ou par pas pour pourquoi qu quand
        que quel quelle quelles quels qui quoi s sa se ses si son sont sur ta te tes toi ton tu un une vos votre
        vous y
        """,
    "german": """
        aber alle als am an auch auf aus bei bin bis bist da damit das dass dein deine dem den der des dich die
        dies diese dir doch du durch ein eine einem einen einer eines er es euer eure für gab ging haben habe
        hast hat hatte hatten ich ihm ihn ihr ihre ihren im in ist ja jetzt kann kein keine mein meine meinem
        meinen meiner mich mir mit muss musste nach nicht noch nun oder ob schon sehr sein seine seit sich sie
        sind so über um und uns unser unsere unseren vom von vor wann war waren warum was weil welche welchem
        welchen welcher welches wem wen wenn wer werden wie wieder wieso will wir wird wo wohin woher wurde zu
        zum zur
        """,
    "turkish": """
        acaba ama ancak bana bazı ben benim beni bir biz bize bizim bu bunu çok da daha de değil diye en gibi
        hangi hangisi hangileri her için ile ise ki kaç kim kime kimin mi mı mu mü nasıl nasıldı ne neden nedir
        nerede nereden neresi nereye neler o olan olarak oldu olduğu ona onu onun sana sen senin siz sizin şey
        şu ve veya var ya yok zaman
        """,
    "italian": """
        a ad agli ai al alla alle anche c che chi ci come con cosa cui da dal dalla dei del della delle dell di
        dov dove e è era erano gli ha hai hanno ho i il in io la le lei lo loro l lui ma mi mia mie miei mio ne
        nel nella nei noi non nostra nostri nostro o per perché più qual quale quali quando quanti quanto questa
        questo se sei si sono su sua suo sul sulla ti tu tua tuo un una uno vi voi
        """,
    "indonesian": """
        ada adalah akan aku anda apa apakah bagaimana berapa bisa dan dari dengan di dia ini itu juga kami kamu
        kapan karena ke kepada kita mana mengapa mereka oleh pada saja saya sebuah siapa sudah telah tidak untuk
        yang
        """,
    "polish": """
        a ale bardzo bo by być był była było były ci ciebie co czy dla do gdy gdzie i ich ile im jak jaka jaki
        jakie jakiego jakim ja jego jej jest jestem już komu kto która które który ktoś ma mam mi mnie moja moje
        mój my na nas nie nam o od on ona one oni po pod przez się są ta tak także te tego tej ten to tu ty u w
        we z za ze że
        """,
    "dutch": """
        aan als bij dan dat de der deze die dit door een en er ge geen had heb hebben heeft hem het hij hoe
        hoeveel hun ik in is je jij jouw kan maar me met mij mijn naar niet nog of om onze ons ook op over te
        tot u uit van voor waar waarom wanneer waren was wat we welk welke werd wie wij wordt zal ze zich zij
        zijn zo zou
        """,
    "romanian": """
        a al ai ale am ar are aș au că ca care ce cine când cât câte câți cu cum de din după ea ei el este era
        eu fi fost în îmi își i la lui mai mea mei meu mi ne noi nostru nu o pe pentru prin sa să se sunt și te
        tu un una unde unei unui vă voi
        """,
    "swedish": """
        alla att av de dem den deras dess det dig din du där efter eller en er ett för från ha hade han har
        henne hennes hon hos hur i icke inte jag kan man med men mig min mina mitt många när nu och också om oss
        på sig sin ska skall som så till under upp ut vad var varför vars vart vem vi vid vilka vilken vilket
        vill vår våra är
        """,
    "czech": """
        a ale ani asi až bez být by byl byla byli bylo co do jak jaká jaké jaký je jeho její jejich jsem jsme
        jsou já k kam kde kdo kdy kolik která které který má mám mi mě můj moje na náš naše ne nebo o od po pro
        proč s se si ta tak také ten to u už v ve však z za že
        """,
    "hungarian": """
        a az azt de egy és ez ezt hány hogy hogyan hol hová honnan van volt voltak vagy vagyok ki kik kit kinek
        mi mit miért mikor milyen melyik mennyi meg már még nem nekem neki is csak ha én te ő ti ők el fel le be
        lesz lett szerint után között minden
        """,
    "danish": """
        af at da de dem den der deres det dig din du efter eller en er et for fra ham han har havde have hendes
        hun hvad hvem hvilke hvilken hvilket hvor hvordan hvorfor hvornår i ikke jeg jeres kan man med men mig
        min mine mit mange når og også om op os på sig sin skal som til ud var vi vil vores være
        """,
    "finnish": """
        ei eikä en että emme hän hänen he ja jo joka jos jotka kanssa keitä kenelle keneltä kenen ketkä koska
        kuin kuinka kuka me meidän meille mihin mikä miksi millainen milloin minulla minulle minun minä missä
        mistä mitä mitkä montako mutta myös ne niin nyt oli olen olet olin olivat olla on onko ovat paljonko
        saako se sen sinun sinä sitä tai tämä te teidän vai vielä voi
        """,
    "norwegian": """
        av at da de dem den der deres det deg din du eller en er et etter for fra ham han har hadde ha henne hun
        hva hvem hvilke hvilken hvilket hvor hvordan hvorfor i ikke jeg kan man med men meg min mine mitt mange
        når og også om opp oss på seg sin skal som til ut var vi vil vår våre være
        """,
    "catalan": """
        amb aquest aquesta com de del dels el els en és ser està estan fa ha han he hem hi i jo la les li meu
        meva molt més no nostra nostre o on per però què qui quan quant quina quin quins quines se seu seva si
        són també tinc té un una uns va vam vaig
        """,
    "lithuanian": """
        ar aš apie bei bet buvo iki iš į jis ji jie jos jo ką kada kai kaip kas kiek kokia koks kuri kuris kur
        kodėl man mano mes mūsų ne nes nuo o per po prie su savo tai tas ta tu tavo už yra
        """,
    "estonian": """
        aga ei ega et ja kas kes keda kelle kellele kui kuidas kuhu kus ka ma me mida miks millal milline mis
        mille mitu minu mu mul mulle need nad ning oli olen oma on see seda sa siis ta te tema teie või üks
        """,
}
"""By language in Latin letters, as Snowball names them: of two that a text is in equally, the first is taken."""

OF_OTHER_LETTERS = """
    а без бы был была были было в вам вас весь во вот все всё вы где да даже для до его ее её если есть ещё же за и
    из или им их к как какая какие каким каких какого какой каком какую когда кого ком кому которая которой которые
    который которых кто куда ли мене мне меня мной мои мой моя мою моей моих мы на над нам нами нас наш наша наши не
    него нее неё нет ни них но о об он она они оно от откуда по под почему при про с свой себя сколько со так также
    там те тебе тебя то того тоже той только том ты у уже чего чем что чтобы чья это эта эти этой этот я або але був
    була було вони він вона де з й її його коли котрий куди між мені мій навіщо ні під скільки та також твій ти тому
    хто це цей ця чи чому що щоб як яка яке який яких які αν από αυτή αυτό για δε δεν εγώ εδώ εκεί είμαι είναι είχα
    είχε ένα ένας εσύ έχει έχω η ήταν θα και κάποιος κατά με μας μετά μη μην μια μου να ο οι όμως όπου όταν ότι πόσα
    πόσες πόσο πόσοι πότε που πού ποια ποιο ποιοι ποιος ποιον πριν προς πώς πως σας σε στη στην στις στο στον στους
    σου τα τη την της τι τις το τον του τους των أحد إلى أن أنا أنت أو أي أين إن الذي التي الذين بعد بكم بين به بها
    تلك ثم حتى حول خلال ذلك سوف على عن عند عندي عندما غير في فيه فيها قبل قد كان كانت كل كم كما كيف كيفية لا لدي لقد
    لك لكن لكي لم لماذا لمن له لها لي ليس ما ماذا متى مع معي من منذ منها منه نحن هذا هذه هل هم هنا هناك هو هي وما
    ومن وهل وهو وهي يا از است اگر این آن آیا او ایشان با باید بر برای بود بودند بین تا تو چرا چند چه چی چگونه چطور
    خود در را شد شما شده کجا کجاست کدام کرد کرده که کی مرا می نه نیست ها همه هر و هست یا یک אבל או אחרי אחת איזה
    איזו אילו אין איך איפה אל אליו אם אנו אנחנו אני אצל את אתה אתם באיזה באיזו באילו בו בין בכמה בשביל גם האם הוא
    היא היה היו היתה היכן הם הן זאת זה זו יש כאשר כדי כי כל כמה כמו לא לאן לו לי למה למי לנו לפני לך ללא מאיפה מאין
    מדוע מה מי מן מתי עד עוד על עלי עם פה רק של שלה שלהם שלו שלי שלך שלכם שלנו שם अब अपना अपनी अपने आप इन इस इसका
    इसकी इसके उन उनका उनकी उनके उस उसका उसकी उसके उसे एक और कब कर करना करने कहाँ का कि किन किस किसका किसकी किसके
    किसने किसे की के को कोई कौन कौनसी कौनसा क्या क्यों कितना कितनी कितने कैसा कैसी कैसे गई गए गया जब जहाँ जो तक तब
    तो था थी थे दिया दी ने न नहीं पर भी मुझे मेरा मेरी मेरे में मैं मैंने यह या ये वह वाला वाली वाले वे से हम हमने
    हमारा हमारी हमारे ही हुआ हुई हुए हूँ है हैं हो होता होती होना
    """
"""Of Russian, Ukrainian, Greek, Arabic, Persian, Hebrew and Hindi together."""

OF_QUESTIONS = {
    "spanish": "hice hizo hicimos hiciste hacer hecho dije dijo dijimos dijiste dicho decir hablé hablamos pasó conté",
    "portuguese": "fiz fez fizemos fizeste feito fazer disse dissemos disseste dizer falei falamos aconteceu contei",
    "french": "faire faisais faisait fais dire dis disais disait dit parlé parler parlions passé raconté",
    "german": """
        gemacht machen machte machten getan tun tat taten gesagt sagen sagte sagten erzählt erzählte gesprochen geredet
        erwähnt geschah geschehen passiert passierte los
        """,
    "turkish": "yaptım yaptı yaptık yaptın yapmıştım dedim dedi dedin söyledim söyledi konuştum konuştuk anlattım",
    "italian": "fare faccio fatto feci fece detto dire dissi disse parlato parlare raccontato successo accaduto",
    "indonesian": "melakukan lakukan kulakukan dilakukan katakan kukatakan bilang bicarakan terjadi",
    "polish": "robiłem robiłam robił zrobiłem zrobiłam powiedziałem powiedziałam powiedział mówiłem mówiłam stało",
    "dutch": "gedaan doen deed deden gezegd zeggen zei zeiden gesproken verteld vertelde gebeurd gebeurde",
    "romanian": "făcut făcusem spus zis vorbit povestit întâmplat",
    "swedish": "gjort gjorde göra sagt sa sade säga pratade berättade hände hänt",
    "czech": "dělal dělala dělali udělal udělala řekl řekla říkal říkala mluvil mluvila stalo",
    "hungarian": "csináltam csinált csináltunk csinálni mondtam mondott mondta mondtál beszéltünk történt",
    "danish": "gjort gjorde gøre lavet lavede sagt sagde sige talte fortalte sket skete",
    "finnish": "tein teki teit teimme tehnyt tehdä sanoin sanoi sanoit sanonut puhuin puhuimme kerroin tapahtui",
    "norwegian": "gjort gjorde gjøre sagt sa si snakket fortalte skjedd skjedde",
    "catalan": "fer fet feia dir dit deia parlar parlat passar passat explicat",
    "lithuanian": "dariau darė darėme padariau sakiau sakė kalbėjome įvyko nutiko",
    "estonian": "tegin tegi tegime teinud ütlesin ütles ütlesid rääkisin rääkisime juhtus",
}
"""What English has among its stop words: did, said, told. Questions to a memory have them, whatever they are about. No
text tells its language by them."""

OF_QUESTIONS_IN_OTHER_LETTERS = """
    делал делала делали сделал сделала сказал сказала говорил говорила говорили рассказал рассказала произошло робив
    робила зробив зробила сказав казав говорив сталося έκανα έκανε έκανες κάναμε είπα είπε είπες είπαμε συνέβη έγινε
    فعلت فعل فعلنا قلت قال قلنا تحدثنا حدث حصل کردم کردی کردیم گفتم گفت گفتی گفتیم افتاد עשיתי עשית עשה עשינו אמרתי
    אמרת אמר אמרנו דיברנו קרה किया किए की कहा बताया बोला
    """

_JAPANESE = """
    何 なに なん 誰 だれ どこ いつ どう どの どれ どんな なぜ どうして くらい いくつ いくら 私 僕 俺 あなた
    した して する しました します ました ます です でした だった っけ のか でしょう あった あり ある いた いる
    言い 言った 話し 話した 教えて ください 覚えて こと について
    """
_OTHER_UNSPACED = """
    什么 什麼 甚麼 怎么 怎麼 怎样 怎樣 为什么 為什麼 哪里 哪裡 哪儿 哪个 哪個 哪些 谁 誰 多少 吗 嗎 呢
    的 了 我 你 他 她 们 們 过 過 做 说 說 告诉 告訴 记得 記得 发生 發生 是 在 有
    무엇 무엇을 무엇이 뭐 뭘 뭐가 뭐를 무슨 언제 어디 어디서 어디에 어디에서 어디로 누구 누구와 누구한테 누가
    왜 어떻게 어떤 얼마 얼마나 몇 나는 내가 제가 저는 우리 우리가 우리는 말했 얘기했 이야기했 나요 까요 에 에는 은 는
    했 했나요 했어요 했습니까 했지 했니 했는지 하셨 하나요 있나요 있었나요 있어요 있었어요 인가요 였나요 이었나요 습니까
    อะไร ที่ไหน เมื่อไหร่ เมื่อไร ใคร ทำไม อย่างไร ยังไง เท่าไหร่ เท่าไร ทำ ฉัน ผม เรา ของ ที่ ใน และ ได้ เป็น มี ไหม ครับ ค่ะ คะ บ้าง พูด บอก
    """

EMPTY_UNSPACED = (
    rf"[はがをにでともへのか]{{0,2}}(?:{'|'.join(sorted(_JAPANESE.split(), key=len, reverse=True))})か?"
    rf"|{'|'.join(sorted(_OTHER_UNSPACED.split(), key=len, reverse=True))}"
)
"""A pattern of both kinds in scripts without spaces, of Japanese ones with the particles beside them, and in Korean."""
