"""What languages are told apart by: their scripts, their commonest words, their letters.

The words are those that hold a sentence together, and those with which people address an assistant.
A word of several languages stands in the row of each: it then says less about any one of them. So
what a row must not lack is a word that it shares with another.
"""

from __future__ import annotations

from collections.abc import Mapping

SCRIPTS: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x024F, "Latin"),
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0531, 0x058F, "hy"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0750, 0x077F, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x09FF, "bn"),
    (0x0A00, 0x0A7F, "pa"),
    (0x0A80, 0x0AFF, "gu"),
    (0x0B00, 0x0B7F, "or"),
    (0x0B80, 0x0BFF, "ta"),
    (0x0C00, 0x0C7F, "te"),
    (0x0C80, 0x0CFF, "kn"),
    (0x0D00, 0x0D7F, "ml"),
    (0x0D80, 0x0DFF, "si"),
    (0x0E00, 0x0E7F, "th"),
    (0x0E80, 0x0EFF, "lo"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "ka"),
    (0x1100, 0x11FF, "ko"),
    (0x1780, 0x17FF, "km"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "el"),
    (0x3041, 0x30FF, "Kana"),
    (0x31F0, 0x31FF, "Kana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xAC00, 0xD7AF, "ko"),
    (0xFB50, 0xFDFF, "Arabic"),
)
"""The first and last code point of a block, and its script, or the language if it has only one
that many people write."""

UNSPACED = frozenset({"th", "lo", "km", "my"})
"""Languages that write no blanks between words."""

OTHER_LANGUAGES: Mapping[str, frozenset[str]] = {"he": frozenset("װױײ"), "bn": frozenset("ৰৱ")}
"""Letters of another language in the script of one: Yiddish, Assamese."""

CHINESE = frozenset(
    "的是了吗嗎我你他她有不在这這个個么麼什们們请請帮幫怎多少为為和对對把给給吧呢能会會要可以如何"
)
"""Characters without which hardly a sentence of Chinese is written, but a name or a title is."""

TRADITIONAL, SIMPLIFIED = (
    frozenset("嗎這個麼們請幫為對給會說話時間問題過還來學習寫開關電腦後讓從點樣經應該體圖書長門"),
    frozenset("吗这个么们请帮为对给会说话时间问题过还来学习写开关电脑后让从点样经应该体图书长门"),
)
"""Characters that the other way to write Chinese has not."""

WORDS: Mapping[str, Mapping[str, str]] = {
    "Latin": {
        "en": "hi hello thanks thank you're like between just know think using use all any only "
        "the of and to in is are was were be been a an it its this that these those you your i "
        "my me we our they their he she his her not no don't doesn't can't isn't i'm 's 've 're "
        "'ll how what whats why which who when where there do does did can could would should "
        "will have has had for from with without on at by as or but if so about into than then "
        "please write explain make give help tell fix show find need want get many much some",
        "de": "hallo danke hi ich's gibt's geht funktioniert zwischen sehr mehr alle jetzt habt "
        "hatte würde wäre sich nix nichts gestern morgen sagen macht machen der die das "
        "den dem des ein eine einen einem einer eines und oder aber ist sind war waren sein bin "
        "bist ich du er sie es wir ihr mir mich dir dich mein meine meinen meiner dein deine "
        "nicht kein keine auf für mit von zu zum zur bei nach aus an am im in über unter wie was "
        "warum wieso wer wo wann welche welcher welches viele gibt kann kannst könnte können "
        "muss soll habe hast hat haben wird werden wurde wenn weil dass als auch noch nur schon "
        "mal bitte mach schreib schreibe erkläre erklär gib zeig hilf man so um folgenden diese "
        "dieser dieses dann immer falsch heute",
        "fr": "bonjour salut merci plaît marche dois faut tout tous bien été fais même encore "
        "entre alors le la les l' un une des du de d' et ou mais est sont était être suis es je "
        "j' tu il elle on nous vous ils elles mon ma mes ton ta tes son sa ses ne n' pas plus "
        "que qu' qui quoi quel quelle quels quelles comment pourquoi combien où quand ce c' cet "
        "cette ces ça c'est dans en sur sous avec sans pour par au aux y a à ai as avez ont "
        "avoir peux peut pouvez fait faire écris écrire explique expliquer moi toi lui dire si "
        "comme très aussi donne aide m' s' t'",
        "es": "¿ ¡ hola gracias cual quien donde cuando cuantos cuantas porque entre todo todos "
        "puede puedo tambien también está desde hasta sea fue dime trabajar el la los las un una "
        "unos unas de del y e o pero es son era ser estoy están yo tú él ella nosotros ustedes "
        "mi mis tu tus su sus me te se lo le no que qué quién cómo como cuál cuáles cuándo dónde "
        "cuántos cuántas por para con sin en sobre al a hay ha he han tengo tiene puedes quiero "
        "hacer haz escribe explica explícame ayuda ayudame ayúdame dame más muy este esta esto "
        "estos estas si sí ya hoy entiendo funciona codigo código favor",
        "it": "ciao buongiorno grazie dammi siamo tutto tutti bene fra tra ed sto stai vorrei "
        "posso può fa quindi il lo la i gli le l' un' d' dell' all' nell' un uno una di del "
        "della dei delle degli dello e o ma è sono era essere io tu lui lei noi voi mio mia miei "
        "tuo tua suo sua mi ti si ci non che chi cosa come perché quale quali quando dove quanto "
        "quanti quante per con senza in su sul sulla nel nella al alla da dal dalla ho hai ha "
        "hanno puoi fare fai scrivi spiega spiegami spiegarmi aiuto aiutami dimmi più molto "
        "anche questo questa se funziona codice errore",
        "pt": "preciso dois olá oi obrigado obrigada dê tudo todos bem entre então fui foi seja "
        "até pelo pela estava vocês o a os as um uma uns umas de do da dos das e ou mas é "
        "são era ser eu tu você ele ela nós meu minha meus minhas seu sua me te se lhe não "
        "que quem como qual quais quando onde quanto quantos quantas por porque para pra "
        "pro com sem em no na nos nas num ao à há tem tenho existem pode posso consigo vou "
        "fazer faça escreva escrever explique explicar ajuda ajude diga mais muito também "
        "este esta isto isso esse essa sim já hoje funciona código estou está",
        "nl": "hallo hoi bedankt dank alstublieft graag tussen alle nu wil wilt mag heel beter "
        "werken doen doe maken de het een en of maar is zijn was ben bent ik jij je u hij zij ze "
        "we wij mij me mijn jouw niet geen op voor met van naar bij uit aan in om over onder te "
        "hoe wat waarom wie waar wanneer welke hoeveel er die dat dit deze kan kun kunt moet zal "
        "heb hebt heeft hebben wordt worden als omdat ook nog alleen al schrijf leg uitleggen "
        "maak geef help zo dan veel werkt vandaag",
        "sv": "hej tack heter allt alla får göra ge mer sen hos mycket skillnaden och eller men "
        "är var vara jag du han hon vi ni mig mitt min mina din ditt inte ingen på för med av "
        "till från i om över under en ett den det de hur vad varför vem när vilken vilka många "
        "finns kan kunde ska skulle har hade måste som att också bara skriv förklara gör hjälp "
        "hjälpa snälla så då fungerar sig dig blir blev kör använda utan igen alltid mellan nu",
        "da": "hej hedder alt alle får gøre mere forskellen spørgsmål og eller men er "
        "var være jeg du han hun vi i mig mit min mine din dit ikke ingen på for med af til fra "
        "hos om over under en et den det de der hvor hvad hvorfor hvem hvornår hvilken hvordan "
        "mange kan kunne skal skulle har havde må som at også kun skriv forklar gør giv hjælp "
        "hjælpe venligst så da meget virker man dem noget nogle nogen dag dig sig bliver blev "
        "kører lav lave bruge uden igen altid tak mellem nu",
        "no": "hei heter alt alle får gjøre mer forskjellen spørsmål takk jobb og eller men er "
        "var være jeg du han hun vi i meg mitt min mine din ditt ikke ingen på for med av til "
        "fra hos om over under en ei et den det de hvor hva hvorfor hvem når hvilken hvordan "
        "mange finnes kan kunne skal skulle har hadde må som at å også bare skriv forklar gjør "
        "gi hjelp hjelpe vennligst så da mye fungerer noe noen si dem selv dag deg seg blir ble "
        "kjører lag lage bruke uten igjen alltid mellom nå",
        "fi": "hei moi kiitos kiitti ovatko onko haluan pitäisi olisi ei mutta siis sitten nyt "
        "kun hyvä viisi paljon enemmän välillä ero ja tai on ovat oli olla olen minä sinä hän me "
        "te he minun sinun se tämä nämä ne en et eivät että jos koska miten mitä mikä miksi kuka "
        "missä milloin kuinka monta voi voit voitko voinko pitää kanssa ilman myös vain niin "
        "hyvin kirjoita selitä selittää tee anna auta kuin alle yli kaikki minulle toimi ole "
        "joka",
        "et": "tere aitäh kas nüüd siis rohkem vahel tahan peaks ja või aga on oli olla olen "
        "mina sina ma sa ta me te nad minu sinu see need ei et kui sest kuidas mida mis miks kes "
        "kus millal mitu palju võib saab saad saan pean koos ilma ka ainult nii väga kirjuta "
        "selgita tee anna aita palun mulle tööta",
        "pl": "cześć hej dzięki dziękuję jaka jaki jakie jakich są chcę chciałbym więc teraz "
        "bardziej między wszystko coś działać zrobić będzie i oraz lub albo ale jest "
        "był była być jestem ja ty on ona my wy mnie mi mój moja moje mojego twój nie żaden na "
        "dla z ze od do w we o po pod nad przez przed bez jak co dlaczego kto gdzie kiedy który "
        "która które ile czy to ten ta te tego tym że żeby może możesz mogę mam masz ma mają się "
        "też także tylko już napisz wyjaśnij wyjaśnić zrób daj pomóż proszę działa niż jeśli "
        "bardzo",
        "cs": "ahoj díky děkuji jaké jaký jaká jsme chci tedy teď více mezi všechno něco dělat "
        "udělat bude a i nebo ale je jsou byl byla být jsem jsi já ty on ona my vy mě mi "
        "můj moje moji tvůj ne není na pro s se z ze od do v ve o po pod nad přes před bez jak "
        "co proč kdo kde kdy který která které kolik to ten ta tento tato toto že aby může můžeš "
        "mohu mám máš má si také jen už napiš vysvětli vysvětlit udělej dej pomoz prosím než "
        "když jestli tím velmi",
        "sk": "ahoj ďakujem aké aký aká sme chcem teda teraz viac medzi všetko niečo robiť "
        "urobiť bude a i alebo ale je sú bol bola byť som si ja ty on ona my vy ma mi "
        "môj moje moji tvoj nie na pre s sa so z zo od do v vo o po pod nad cez pred bez ako čo "
        "prečo kto kde kedy ktorý ktorá ktoré koľko to ten tá tento táto toto že aby môže môžeš "
        "môžem mám máš má tiež len už napíš vysvetli vysvetliť urob daj pomôž prosím než keď či "
        "tým veľmi neviem",
        "sl": "živjo hvala kakšna kakšen smo hočem torej zdaj več med vse nekaj narediti bo in "
        "ali pa je so bil bila biti sem si jaz ti on ona mi vi me moj moja tvoj ne ni na za z s "
        "se od do v o po pod nad čez brez kako kaj zakaj kdo kje kdaj kateri katera koliko to ta "
        "ki da bi lahko imam imaš ima tudi samo že napiši razloži naredi daj pomagaj prosim kot "
        "če zelo te",
        "hr": "bok hvala kakav kakva smo želim dakle sada više između sve nešto napraviti bit će "
        "i ili ali je su bio bila biti sam si ja ti on ona mi vi me moj moja tvoj ne nije na za "
        "s sa se od do u o po pod nad kroz bez kako što zašto tko gdje kada koji koja koje "
        "koliko to taj ta ovaj da bi može možeš mogu imam imaš ima li također samo već napiši "
        "objasni napravi daj pomozi molim kao ako vrlo uvijek nego lijepo ovdje",
        "sr-Latn": "zdravo hvala kakav kakva smo želim dakle sada više između sve nešto "
        "napraviti će i ili ali je su bio bila biti sam si ja ti on ona mi vi me moj moja tvoj "
        "ne nije na za s sa se od do u o po pod nad kroz bez kako šta zašto ko gde kada koji "
        "koja koje koliko to taj ta ovaj da bi može možeš mogu imam imaš ima li takođe samo već "
        "napiši objasni napravi daj pomozi molim kao ako veoma uvek nego lepo ovde",
        "hu": "szia helló köszönöm milyen szeretnék akkor most több valami minden legyen lesz "
        "miatt után kell vagy a az egy és de is van vannak volt lenni vagyok én te ő mi "
        "ti ők nekem neked engem nem nincs hogy mit miért ki hol mikor melyik mennyi hány hogyan "
        "ez ezt azt ezek ha mert tud tudsz tudod lehet kellene meg már csak még írj magyarázd "
        "magyarázni csinálj adj segíts kérlek mint el fel alatt között működik nagyon",
        "ro": "salut bună mulțumesc mersi multumesc este suntem vrea acum mai mult între tot "
        "toate ceva face fac și si sau dar sunt era fi eu tu el ea noi voi îmi imi mi mă te se "
        "meu mea mele tău nu ce cine cum de unde când care cât câte câți câtă pentru cu fără în "
        "in pe la din sub peste prin un o unei unui al ale a lui am ai are au poate poți pot "
        "vreau să sa foarte doar scrie explică explici fă dă ajută ajuta rog dacă că asta acest "
        "această merge",
        "tr": "merhaba selam teşekkürler teşekkür nedir istiyorum şimdi arasında fark her şey "
        "hiç yapmak yapabilir bana ve veya ama fakat bir bu şu o ben sen biz siz onlar sana "
        "benim senin değil var yok ne nasıl neden niye niçin kim nerede hangi kaç tane mi mı mu "
        "mü misin mısın için ile gibi kadar daha çok en de da ki olarak olan olur lütfen yaz "
        "açıkla açıklar yap ver yardım eder göster bunu şunu sonra önce çalışmıyor",
        "vi": "chào xin cảm ơn ơi ạ vậy đây mẹ bố lại nói biết thì ý và hoặc nhưng là có "
        "không tôi bạn anh chị em mình của cho với từ đến trong trên dưới này đó kia gì sao tại "
        "thế nào ai đâu khi bao nhiêu được bị phải cần muốn hãy viết giải thích giúp làm một "
        "những các số hơn nhất rất cũng chỉ đã đang sẽ nếu mà vì nhỏ lớn như về ra",
        "id": "halo hai terima makasih mau ingin sekarang antara semua sesuatu membuat punya dan "
        "atau tetapi tapi adalah ini itu saya aku kamu anda kita kami mereka dia yang di ke dari "
        "untuk dengan tanpa pada dalam tidak bukan apa siapa bagaimana kenapa mengapa kapan mana "
        "berapa banyak bisa harus akan sudah belum ada jika kalau karena juga hanya tolong "
        "buatkan buat tulis tuliskan jelaskan bantu beri cara lebih sangat seperti bawah jalan "
        "nya bisakah gimana gak nggak aja dong banget bikin bikinin kasih kode coba sedang bahwa",
        "ms": "hai helo terima mahu ingin sekarang antara semua sesuatu membuat dan atau tetapi "
        "tapi adalah ini itu saya aku awak anda kita kami mereka dia yang di ke dari untuk "
        "dengan tanpa pada dalam tidak bukan apa siapa bagaimana kenapa mengapa bila mana berapa "
        "banyak boleh harus akan sudah belum ada jika kalau kerana juga hanya tolong buatkan "
        "buat tulis tuliskan terangkan bantu beri cara lebih sangat seperti bawah macam nak tak "
        "jalan bolehkah",
        "tl": "kumusta salamat gusto ngayon lahat ang ng mga sa ay at o pero ako ikaw ka siya "
        "kami tayo sila ko mo niya natin ito iyan hindi wala may mayroon ano sino paano bakit "
        "kailan saan alin ilan ilang kung dahil para na pa din rin lang po ba gawin isulat "
        "ipaliwanag tulungan bigyan maaari pwede",
        "ca": "hola gràcies bon dia vull ara entre tot tots el la els les l' d' m' n' s' un una "
        "uns unes de del dels i o però és són era ser jo tu ell ella nosaltres meu meva teu seva "
        "em et es li no que què qui com quin quina quan on quants quantes per perquè amb sense "
        "en sobre al als a hi ha he han tinc té puc pots pot fer fes escriu explica ajuda "
        "ajuda'm digues dona més molt també aquest aquesta això si avui funciona",
        "gl": "ola grazas quero agora entre todo todos o a os as un unha uns unhas de do da dos "
        "das e ou pero é son era ser eu ti vostede el ela nós meu miña seu súa me te se lle non "
        "que quen como cal cales cando onde canto cantos cantas por porque para con sen en no na "
        "ao á hai ten teño pode podo podes facer fai escribe explica axuda di dá máis moi tamén "
        "este esta isto iso si xa hoxe",
        "lt": "ir arba bet yra buvo būti esu aš tu jis ji mes jūs man mano tavo ne nėra ant už "
        "su be iš į apie po per prie kaip kas ką kodėl kur kada kuris kuri kiek ar tai šis ši "
        "tas ta kad jei nes gali galiu reikia taip pat tik jau parašyk paaiškink padaryk duok "
        "padėk prašau labai mažesnių",
        "lv": "un vai bet ir bija būt esmu es tu viņš viņa mēs jūs man mans tavs nē nav uz par "
        "ar bez no pie pēc kā kas ko kāpēc kur kad kurš kura cik tas tā šis šī ka ja jo var varu "
        "vari vajag arī tikai jau uzraksti paskaidro izdari dod palīdzi lūdzu ļoti",
        "sq": "dhe ose por është janë ishte jam unë ti ai ajo ne ju mua im ime yt nuk mos në për "
        "me pa nga te mbi nën si çfarë pse kush ku kur cili cila sa ky kjo që të një nëse sepse "
        "mund duhet kam ke ka edhe vetëm shkruaj shpjego bëj jep ndihmo lutem shumë",
        "sw": "na au lakini ni si mimi wewe yeye sisi ninyi wao yangu yako yake hii huu hiyo huo "
        "ya wa za la cha kwa katika kutoka bila nini nani vipi jinsi kwanini wapi lini gani "
        "ngapi kama kwamba tafadhali andika eleza nisaidie fanya hapa sana pia tu",
        "af": "die 'n en of maar is was wees ek jy hy sy ons julle hulle my jou nie geen op vir "
        "met van na by uit aan in om oor onder te hoe wat hoekom wie waar wanneer watter hoeveel "
        "daar dit hierdie kan moet sal het hê word as omdat ook nog net al skryf verduidelik "
        "maak gee help so dan baie werk",
        "eu": "eta edo baina da dira zen izan naiz ni zu hura gu zuek haiek nire zure ez bai zer "
        "nor nola zergatik non noiz zein zenbat hau hori daude dago dut duzu dezakezu gabe ere "
        "bakarrik idatzi azaldu egin eman lagundu mesedez bat",
    },
    "Cyrillic": {
        "ru": "привет спасибо какого каком дай хочу теперь между всё все более сделать "
        "будет его их и или но а это как что чтобы почему зачем кто где когда какой какая какие "
        "который сколько я ты он она мы вы они мне меня мой моя мои тебя твой не нет на для с со "
        "от до в во о об по под над через перед без из к у за есть был была было быть может "
        "можешь можно надо нужно если то же бы ли также только уже напиши объясни сделай помоги "
        "пожалуйста меньше больше чем мной работает очень",
        "uk": "привіт дякую яка який хочу тепер між все більш зробити буде його їх і й або але а "
        "це як що щоб чому навіщо хто де коли які котрий скільки я ти він вона ми ви вони мені "
        "мене мій моя мої тебе твій не ні немає на для з зі із від до в у о об про по під над "
        "через перед без к за є був була було бути може можеш можна треба потрібно якщо то ж би "
        "чи також тільки вже напиши поясни зроби дай допоможи будь ласка менше більше ніж працює "
        "дуже",
        "be": "прывітанне дзякуй хачу цяпер паміж усё зрабіць будзе і або але а гэта як што каб "
        "чаму хто дзе калі які якая колькі я ты ён яна мы вы яны мне мяне мой мая не няма на для "
        "з са ад да ў у пра па пад над праз без ёсць быў была быць можа можаш трэба то ж бы ці "
        "таксама толькі ўжо напішы растлумач зрабі дай дапамажы ласка",
        "bg": "здравей здрасти благодаря искам сега между всичко нещо направя бъде е и или но а "
        "това как какво че защо кой къде кога какъв каква какви който колко аз ти той тя ние вие "
        "те ми ме мой моя моят твой не няма на за с със от до в във о по под над през пред без "
        "из към у са съм си бил била може можеш мога трябва ако то бих ли също само вече напиши "
        "обясни обясниш направи дай помогни моля има се да ще много",
        "sr": "здраво хвала желим сада између све нешто и или али а ово како шта зашто ко где "
        "када који која које колико ја ти он она ми ви они мени мој моја твој не нема на за с са "
        "од до у о по под над кроз пред без из је су сам си био била бити може можеш могу треба "
        "ако то би ли такође само већ напиши објасни направи дај помози молим има се да ће",
        "mk": "здраво благодарам сакам сега меѓу сè нешто и или но а ова како што зошто кој каде "
        "кога која кои колку јас ти тој таа ние вие тие ми ме мој моја твој не нема на за с со "
        "од до во о по под над преку пред без из е се сум си бил била биде може можеш можам "
        "треба ако тоа би ли исто само веќе напиши објасни направи дај помогни те молам има да "
        "ќе",
    },
    "Arabic": {
        "ar": "مرحبا شكرا أعطني لماذا أفضل الفرق و في من إلى الى على عن مع هذا هذه ذلك تلك التي "
        "الذي ما ماذا كيف متى أين اين كم هل لا لم لن ليس أن ان إن أو او ثم كل بعض أنا انا أنت "
        "انت هو هي نحن لي لك كان يكون اكتب أكتب اشرح ساعدني أريد اريد فضلك بين قبل بعد يعمل "
        "الأقل عدد",
        "fa": "سلام ممنون مرسی بهترین فرق و در از به با بر برای این آن که چه چرا چگونه چطور کی "
        "کجا چند کدام آیا نه نمی می است هست نیست بود باشد شود کن کنید بده بدهید بنویس بنویسید "
        "توضیح کمک لطفا لطفاً من تو او ما شما آنها را هم یا اگر تا هر یک بین قبل بعد کار دارد "
        "وجود کمتر عدد",
        "ur": "سلام شکریہ بہترین فرق اور یا میں سے کو کا کی کے پر تک نے یہ وہ جو کہ کیا کیوں "
        "کیسے کب کہاں کتنے کتنا کون ہے ہیں تھا تھی ہو ہوں نہیں مجھے آپ ہم میرا میری میرے کریں "
        "کرو بتائیں بتاؤ لکھیں لکھو مدد براہ کرم بھی اگر تو ایک کم عدد کام",
    },
    "Devanagari": {
        "hi": "नमस्ते धन्यवाद शुक्रिया लिए अंतर और या में से को का की के पर तक ने यह वह जो कि "
        "क्या क्यों कैसे कब कहाँ कहां कितने कितनी कितना कौन है हैं था थी हो हूँ हूं नहीं मुझे आप "
        "हम मेरा मेरी मेरे करें करो बताओ बताएं लिखो लिखें मदद कृपया भी अगर तो एक कम रहा रही",
        "mr": "नमस्कार धन्यवाद आणि किंवा मध्ये पासून ला चा ची चे च्या वर पर्यंत हे हा ही तो "
        "ती ते जे की काय का कसे कसा कधी कुठे किती कोण आहे आहेत होता होती नाही मला तुम्ही आपण "
        "माझा माझी माझे करा सांगा लिहा मदत कृपया पण जर तर एक",
        "ne": "नमस्ते धन्यवाद र वा मा बाट लाई को का की सम ले यो त्यो जुन कि के किन कसरी कहिले "
        "कहाँ कति छ छन् थियो हो हुन् छैन मलाई तपाईं हामी मेरो मेरा गर्नुहोस् भन्नुहोस् "
        "लेख्नुहोस् मद्दत कृपया पनि यदि भने एक",
    },
}
"""For each script of several languages, their words. Some rows are there so that a language is not
taken for another which is more widely written."""

RARE = frozenset({"af", "be", "ca", "eu", "gl", "mk", "sq", "tl"})
"""Languages in which much less is written than in their neighbours, whose words they share."""

RARE_WEIGHT = 0.6
"""How much less a word speaks for one of these."""

LETTERS: Mapping[str, str] = {
    "de": "ßäöü",
    "fr": "œçêèàùûîïôëâ",
    "es": "ñ",
    "pt": "ãõçêâàô",
    "it": "èòùì",
    "nl": "ĳ",
    "ca": "çèòàï",
    "sv": "åäö",
    "da": "åøæ",
    "no": "åøæ",
    "fi": "äö",
    "et": "äöüõ",
    "pl": "ąęłńśźżć",
    "cs": "ěřůčšžď",
    "sk": "ľĺŕôäčšžď",
    "sl": "čšž",
    "hr": "čšžćđ",
    "sr-Latn": "čšžćđ",
    "hu": "őűöü",
    "ro": "ășțşţâî",
    "tr": "ğışçöü",
    "vi": "ăâđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "lt": "ėįųąęūčšž",
    "lv": "āēīūģķļņčšž",
    "sq": "ëç",
    "ru": "ыэё",
    "uk": "ієїґ",
    "be": "ўыэёі",
    "bg": "ъ",
    "sr": "јљњђћџ",
    "mk": "ѓќѕјљњџ",
    "ar": "ةىأإكي",
    "fa": "پچژگکی",
    "ur": "ٹڈڑںےہپچژگکی",
}
"""Letters that a language has, and few others of its script."""

FOREIGN_LETTERS = frozenset("әғқңөұүһҷӣӯөҡҙҫێۆڕڵښځڅېۍڭɓɗƙ")
"""Letters of languages that have no row, in a script of some that have: Kazakh, Tajik, Bashkir,
Kurdish, Pashto, Uyghur, Hausa."""
