"""Which words of a fact say the same, and which say next to nothing: the tables of `hitherto.core.repetition`.

Words of one group may stand for each other in a sentence about a person without anything worth keeping being lost.
Where that is doubtful ("plan" and "want", to "own" and to "run" a shop, "appreciate" and "like") they are kept apart:
what no table knows must stand in both sentences for one to repeat the other, so a missing entry costs a merge and never
a fact. The tables were written from what people say of themselves. For errors on the tuning half of
tests/core/fact_pairs.jsonl, entries were added only where the words mean the same in general; for LoCoMo, none were.
Commas part the entries.
"""

from __future__ import annotations

GROUPS = """
like love enjoy adore enjoyment, favourite favorite, prefer favour preference preferable, want hope wish desire aspire,
plan intend intention aim, live reside residence dwell inhabit, move relocate relocation, buy purchase acquire,
own possess possession, work employ employment, job occupation profession, start begin commence, stop quit cease,
finish complete completion, try attempt, travel trip journey voyage, help assist aid, phone telephone call,
talk chat converse conversation speak, get receive obtain, participate participation, decide decision,
choose choice pick select selection, think believe belief, need require requirement, manage lead head supervise,
repair fix mend, restore restoration refurbish, renovate renovation, collect collection, survive survival, fly flight,
bike bicycle cycle, motorbike motorcycle, car automobile, photo photograph picture pic, film movie, television tv telly,
flat apartment, shop store, sofa couch, autumn fall, rubbish trash garbage, holiday vacation, food cuisine,
sweets candy, football soccer, maths math mathematics, phd doctorate, university college uni, doctor physician,
lawyer attorney, author writer, developer programmer coder, colleague coworker, boss supervisor, flatmate roommate,
housewife homemaker, child kid, mother mom mum mommy mummy mama, father dad daddy papa, grandmother grandma granny nana,
grandfather grandpa granddad grandad gramps, spouse husband wife, fiance fiancee, baby infant newborn, friend pal buddy,
ill sick unwell illness sickness, afraid scared fear frightened fearful terrified, nervous nervousness, anxious anxiety,
worried worry, sad sadness, happy happiness glad, funny humorous humour, patient patience, impatient impatience,
generous generosity, honest honesty, shy shyness, kind kindness, curious curiosity, creative creativity, loyal loyalty,
brave bravery courage courageous, ambitious ambition, stubborn stubbornness obstinate,
introvert introverted introversion, extrovert extroverted extroversion extravert, optimist optimistic optimism,
pessimist pessimistic pessimism, perfectionist perfectionism, religious religion, independent independence,
punctual punctuality, tidy neat, smart clever intelligent intelligence, calm calmness, proud pride,
lonely loneliness lonesome, grateful thankful gratitude, tired exhausted, fluent fluency fluently, allergic allergy,
diabetic diabetes, vegan veganism, deaf deafness, blind blindness, depressed depression, pregnant pregnancy,
born birth birthplace birthday, die death deceased, marry wed wedding marriage, divorce, engage engagement,
retire retirement, graduate graduation, emigrate emigration, immigrate immigration, adopt adoption, volunteer voluntary,
swim swimming, paint painting, exercise workout, meditate meditation, big large huge, small little tiny,
quick fast rapid, hard difficult tough, easy simple, important crucial essential, whole entire all, tasty delicious,
strange weird, rich wealthy, near close nearby, grey gray,
frequent often usual usually regular regularly frequently habitually normally generally, sometimes occasionally,
rarely seldom, almost nearly, approximately approx roughly around, recent lately, maybe perhaps possibly,
appreciate value cherish treasure, achieve accomplish attain accomplishment achievement, arrange organize,
answer reply respond response, recommend suggest recommendation suggestion, prepare preparation,
injure hurt injury, recover recovery heal, hire recruit, sack dismiss, rent lease, stay remain, interested interest,
excited thrilled, beautiful lovely gorgeous, great wonderful fantastic amazing, awful terrible horrible, slim thin,
outgoing sociable, talkative chatty, diligent industrious, messy untidy, polite courteous, modest humble,
confident confidence, cautious careful, adventurous adventure, thrifty frugal,
sceptical skeptical scepticism skepticism, concise brief short, detailed thorough, cheap inexpensive, expensive costly,
loud noisy, employee worker, vet veterinarian, journalist reporter, waiter waitress, actor actress, student pupil,
scientist researcher, cellphone smartphone, computer pc, fridge refrigerator, garden yard gardening, street road,
sea ocean, forest woods, plane airplane aeroplane aircraft, underground subway metro, lorry truck, trousers pants,
sweater jumper pullover, aubergine eggplant, courgette zucchini, coriander cilantro, prawn shrimp, concert gig,
diary journal, exam test examination, thesis dissertation, salary wage, surname lastname, dinner supper, vegetable veg,
surgery operation, medicine medication, abroad overseas, formerly previously, mainly mostly chiefly primarily largely,
several few, many numerous, soon shortly, finally eventually, sister sis, brother bro, aunt auntie, stammer stutter,
wohnt lebt, wohne lebe, wohnen leben, hat besitzt, gusta encanta
"""
"""Words of one meaning."""

AGENTS = """
collector collect, cyclist bike, driver drive, founder found, hiker hike, lover like, owner own, player play,
runner run, smoker smoke, supporter support, surfer surf, survivor survive, swimmer swim, teacher teach
"""
"""What somebody is called who does something, where the sentence says that this is what he is."""

PHRASES = """
be into = like, be keen on = like, be big fan of = like, big fan of = like, fan of = like, be passionate about = like,
passionate about = like, have passion for = like, passion for = like, be crazy about = like, be fond of = like,
fond of = like, take pleasure in = like, keen = like, avid = like, enthusiastic = like, would like = want,
would love = want, dislike = not like, hate = not like, detest = not like, loathe = not like, can not stand = not like,
can not bear = not like, could not stand = not like, would rather = prefer, like better = prefer,
like more than = prefer than, instead of = than, rather than = than, like best = favourite, like most = favourite,
be base in = live in, make home in = live in, work as =, employ as =, have job as =, earn living as =, for living =,
by profession =, by trade =, be employ by = work for, employ by = work for, in charge of = manage, be mother of = have,
be father of = have, be parent of = have, mother of = have, father of = have, give up = stop, no longer = not,
any more =, any longer =, be use to = accustomed, get use to = accustomed, use to = formerly, about to = soon to,
refuse to = not, skip = not, lack = not have,
without = not, not always = sometimes, not all = some, not every = some, not usually = sometimes, not often = sometimes,
not normally = sometimes, not regularly = sometimes, only child = not sibling, no sibling = not sibling,
out of work = unemployed, jobless = unemployed, job hunt = look for job, look for new job = look for job,
suffer from = have, undergo = have, grow up = raise, be bring up = raise, bring up = raise, be raise = raise,
be resident of = live in, be inhabitant of = live in, go out with = date, be in relationship with = date,
be able to = can, know how to = can, be unable to = can not, be good at = good at, look up to = admire,
go back to = return to, come back to = return to, come back from = return from, get back from = return from,
mobile phone = cellphone, cell phone = cellphone, computer game = videogame, video game = videogame,
home town = hometown, last name = surname, family name = surname, first language = mothertongue,
native language = mothertongue, mother tongue = mothertongue, fitness centre = gym, movie theatre = cinema,
police officer = policeman, hard work = diligent, take nap = nap, more than = over, less than = under,
right away = immediately, make decision = decide, give birth to = bear, have conversation with = talk with,
have interest in = interested in, heart attack = heartattack, seek = look for, search for = look for,
self employ = freelance, own boss = freelance, freelancer = freelance, chief executive officer = ceo,
chief executive = ceo, software engineer = software developer, practise law = lawyer, practice law = lawyer,
medical school = medical student, marry to = spouse, want to be = want to become, hope to be = want to become,
plan to be = plan to become, dream of be = want to become, have to = must, tie knot = marry, pass away = die,
come from = from, originally from = from, native of = from, hail from = from, wake up = wake, get up = wake,
go to bed = sleep, go for walk = walk, take walk = walk, go for run = run, go for swim = swim, work out = exercise,
try out = try, find out = learn, talk on phone = phone, by bike = bike, by bicycle = bike, by car = drive,
by train = train, by bus = bus, by plane = fly, on foot = walk, volunteer work = volunteer, be together = date,
be born = born, take part in = participate, go into retirement = retire, in particular =, in year =, city of =,
town of =, be part of = be member of, be in love with = love, as well as = and, as well =, at moment =, at present =,
these day =, year old = age, year of age = age, on one own = alone, lot of =, plenty of =, because of = because,
due to = because, describe himself as =, describe herself as =, describe themselves as =, consider himself =,
consider herself =, consider themselves =, call himself =, call herself =, call themselves =, see himself as =,
see herself as =, see themselves as =, identify as =, name be =, by name of =, have name =, sense of humour = funny,
sci fi = scifi, science fiction = scifi, e mail = email, start up = startup, free time = leisure, spare time = leisure,
leisure time = leisure, high school = highschool, next to = near, get rid of = remove, put off = postpone,
carry on = continue, take up = start, look after = carefor, take care of = carefor, care for = carefor,
take place = happen, not eat meat = vegetarian, eat no meat = vegetarian, veggie = vegetarian
"""
"""What says the same as the words behind the sign, if any. Words are in their plain form, articles left out."""

LIGHT = """
a an the this that these those there here it its itself he him his himself she her hers herself they them their theirs
themselves i me my mine myself we us our ours ourselves you your yours oneself who whom whose which what user users be
am is are was were been being have has had having do does did doing get gets got getting gotten and or nor but so such
as at in on of to for from with by into onto about than then up through during while when whenever where because
although though very really truly quite deeply extremely highly absolutely totally completely passionately particularly
especially incredibly fiercely strongly greatly immensely genuinely definitely certainly basically hugely exceptionally
remarkably somewhat also too both still even already currently now nowadays anymore o'clock
"""
"""What may stand in one of two sentences and not in the other. "To", "from" and their like still tell who is who."""

LIGHT_FOREIGN = """
der die das den dem des ein eine einen einem einer und oder ist sind war hat haben ich er sie es ihr sein seine gern
gerne sehr nutzer benutzer im in am an auf aus bei mit von zu el la los las un una unos unas y o es son fue tiene tener
de del al en con por para a le les lo se su sus muy usuario
"""
"""The same for German and Spanish."""

FOREIGN = """
der das den ein eine einen einem und ist nicht kein keine keinen hat wohnt wohnte lebt mag geht nutzer el los las una un
del vive es usuario gusta tiene trabaja años la en le les une est dans avec il elle della nel gli che uma não com em
"""
"""Small words by which a sentence is known not to be English."""

ENGLISH = """
the is are was has have had his her their on of and to with for at user user's likes loves lives works
"""

BUILDERS = """
and or nor but by than as because although though who whom whose where through
"""
"""Light words that build a sentence: what one of two has of them, the other must have."""

BEHIND_OBJECT = """
to at in on of for from with by about into and or but as than because that when while so too who how what every
everything something nothing daily his their this
"""
"""Before one of these, and at the end, "her" is no possessive."""

REFLEXIVE = """
himself herself themselves myself ourselves yourself oneself itself
"""

MUTUAL = """
engage date marry spouse divorce close friend meet
"""
"""What each of two is to the other: "Ana and Ben are engaged" says the same as "Ana is engaged to Ben"."""

MOVING = """
in on at during when while whenever for from with about since after before near
"""
"""What begins a phrase that may stand at the front, at the end and between."""

SAME_PLACE = """
in on at for during when while whenever
"""
"""Of those, what may stand for each other."""

TO_OR_NOT = """
stop remember forget try regret mean
"""
"""After these "to do" and "doing" are not the same, as they are after "like"."""

WEAK = """
always frequent go use own person member together every time take spend actually simply degree recent any feel hobby
age one stay practise receive serve belong keep thing bit beloved
"""
"""What one of two sentences may say beyond the other if the whole is alike enough: little is lost with it."""

WEAK_BESIDE = """
like = play watch read listen drink eat practise, fluent = talk, gym = exercise train,
breakfast lunch dinner meat = eat, team group family = people
"""
"""What is as weak as that where both sentences have the word in front: one who likes films watches them."""

ONE_VALUE = """
live favourite boss spouse born weigh age name number deadline
"""
"""What has one value at a time: where all but that is the same, one of the two may have come to an end."""

TOPICS = """
live move rent settle, work job unemployed retire career freelance ceo hire promote resign,
single relationship spouse marry divorce engage date pregnant girlfriend boyfriend fiance,
eat meat vegetarian vegan breakfast
"""
"""Sentences of one topic may tell of a change in words that have nothing in common."""

NEGATIONS = """
not never no neither none nobody nothing cannot hardly
"""

NEGATIONS_FOREIGN = """
nicht kein keine keinen keinem keiner nie niemals no nunca jamás tampoco ningún ninguno ninguna
"""

DIRECTIONS = """
from to than about with for by into of in on at
"""
"""Light words that say which of two is which: tea to coffee, from London, a song for or about somebody."""

VERBS = """
like want prefer live own play eat drink speak read write work study teach know need plan think go take make keep
"""
"""What is taken for the verb of a sentence though it has no ending; what ends in "s" after it is a thing."""

TIMELESS_AFTER = """
to would will can could do may might must should help
"""
"""After one of these a plain form tells no time."""

PERSONS = """
he subject:he gender:m, him gender:m, his gender:m, himself gender:m, she subject:she gender:f, her gender:f,
hers gender:f, herself gender:f, i subject:i, we subject:we, husband spouse:m, wife spouse:f
"""
"""What a word tells of who is meant; where both sentences tell it, they must not tell otherwise."""

MONTHS = """
january february march april may june july august september october november december
"""

WEEKDAYS = """
monday tuesday wednesday thursday friday saturday sunday
"""

PERIODS = """
day week month year morning afternoon evening night weekend summer winter spring autumn
"""
"""What something happens every one of."""

CARDINALS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
"""From nought upward."""

TENS = """
twenty thirty forty fifty sixty seventy eighty ninety
"""

ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""

IRREGULAR = """
be was were / been is are am being, have had / has having, do did / does done doing, get got / gotten,
go went / gone goes, become became, begin began / begun, break broke / broken, bring brought, build built, catch caught,
choose chose / chosen, come came, drive drove / driven, draw drew / drawn, drink drank / drunk, eat ate / eaten,
fall fell / fallen, feel felt, fight fought, find found, fly flew / flown, forget forgot / forgotten, give gave / given,
grow grew / grown, hear heard, hold held, keep kept, know knew / known, lead led, leave left, lend lent, lose lost,
make made, mean meant, meet met, pay paid, ride rode / ridden, rise rose / risen, run ran, say said, see saw / seen,
sell sold, send sent, sing sang / sung, sit sat, sleep slept, speak spoke / spoken, spend spent, stand stood,
steal stole / stolen, swim swam / swum, take took / taken, teach taught, tell told, think thought, throw threw / thrown,
understand understood, wake woke / woken, wear wore / worn, win won, write wrote / written, buy bought,
bite bit / bitten, bleed bled, blow blew / blown, burn burnt, cost cost, deal dealt, dig dug, dream dreamt, feed fed,
forgive forgave / forgiven, freeze froze / frozen, hang hung, hide hid / hidden, lay laid, learn learnt,
ring rang / rung, seek sought, shake shook / shaken, shine shone, shoot shot, spread spread, stick stuck, strike struck,
swear swore / sworn, sweep swept, tear tore / torn, withdraw withdrew / withdrawn, cut cut, hit hit, hurt hurt, let let,
put put, quit quit, read read, set set, agree agreed, die died / dying, lie lied / lying, tie tied / tying,
child / children, man / men, woman / women, person / persons, wife / wives
"""
"""A word, its past tense, and after the stroke other forms of it."""

UNSPACED = """
居住 住, 喜欢 爱, 喜爱 爱, 热爱 爱, 厌恶 不爱, 讨厌 不爱, 父亲 爸, 爸爸 爸, 母亲 妈, 妈妈 妈, 两 二
"""
"""What says the same in a script without spaces between words."""

UNSPACED_LIGHT = "用户该此这的了在是他她它们个也很"

UNSPACED_NEGATIONS = "不没无未别非勿"
