"""The plots of the stories: beats in order, a summary, and what the story teaches.

Words: H the hero, F the friend, T an old helper, with he/him/his/himself forms (Hhe, Fhis ...); place, spots, thing.
"""

OPENINGS = [
    "[Once upon a time|Once|Long ago|Many years ago], {in_place}, there lived {Hakind} [named|called] {H}. <{place_is}> "
    "{H} was {trait} and {habit}.",
    "{In_place} there [lived|once lived] {Hakind} [whose name was|by the name of] {H}. <{place_is}> "
    "<[Everybody|All who knew {Hhim}] said that {H} was {trait}.>",
    "[Once there was|There was once|There once was] {Hakind} [named|called] {H}, who lived {in_place}. <{place_is}> "
    "[{HHe} {habit}.|{H} was {trait}.]",
    "{H} was {Hakind} who lived {in_place}. <{place_is}> <[Every day|Every morning] {Hhe} [went for a walk|looked out of "
    "the window|greeted the sun].>",
    "[This is the story of|Let me tell you about] {H}, {Hakind} who lived {in_place}. <{place_is}> <{H} {habit}.>",
]

CLOSINGS = [
    "[From that day on|From then on], {H} and {F} [were the best of friends|were always together|met every day].",
    "That night {H} [fell asleep with a smile|slept better than ever|dreamed of the day].",
    "And [whenever somebody spoke of that day|when people asked about it], {H} [smiled|laughed|was happy].",
    "[It had been|It was] a [good|wonderful|long] day, and {H} [never forgot it|remembered it all {Hhis} life].",
    "And they all lived [happily|in peace] [for many years|ever after].",
    "{H} [looked up at the stars|sat down by the fire|went home] and [was content|felt warm inside|was glad].",
]

PLOTS = {
    "lost": {
        "uses": "thing",
        "beats": [
            "[More than anything else|Most of all], {H} loved {Hhis} {thing}. [It had been a gift from {Hhis} grandmother.|"
            "{HHe} had found it on {Hhis} birthday.|{HHe} took it everywhere.] [But one|One] {day}, [the {noun} was gone|"
            "when {H} looked for it, the {noun} was not there].",
            "[\"Where is my {noun}?\" cried {H}.|\"Oh no!\" said {H}. \"My {noun} is gone!\"] {HHe} [looked|searched] {spot1}, "
            "but it was not there. Then {Hhe} looked {spot2}, [and found only dust|but there was nothing]. <{H} [sat down and "
            "cried a little|was very sad].>",
            "Then {F} {Fthekind} came along. \"[What is the matter|Why are you so sad]?\" {F} asked. {H} told {Fhim} "
            "everything. \"[Do not worry|Do not cry],\" said {F}. \"[Two can search better than one.|I will help you look "
            "for it.|We will find it together.]\" <\"Where did you see it last?\" \"I do not know,\" said {H}.>",
            "They [searched|looked] [for a long time|until the sun was low]. At last they [went|looked] {spot3}, and there "
            "[lay|was] the {thing}! [The wind had carried it there.|{H} had put it there and forgotten it.|A crow had dropped "
            "it there.] <\"We found it!\" they both shouted.> {H} [thanked {F} again and again|gave {F} a big hug|was so happy "
            "that {Hhe} danced].",
        ],
        "summary": ["{H} {Hthekind} lost a {thing} and looked for it everywhere. {F} {Fthekind} helped, and they found it {spot3}."],
    },
    "fear": {
        "beats": [
            "But there was one thing that {H} was afraid of, and that was {fear}. [{HHe} had told nobody about it.|Only {F} "
            "{Fthekind} knew about it.] <\"[Brave people are not afraid|Nobody else is afraid],\" thought {H}, \"so something must be "
            "wrong with me.\">",
            "One {day} {F} [did not come home|did not come back]. [Everybody was worried.|{H} waited and waited.] Then {H} "
            "heard a [faint|small] voice [calling for help|that called: \"Help! Help!\"]. It came from somewhere {spot1}. <It was {F}'s voice.>",
            "{H} [began to tremble|felt {Hhis} heart beat fast], for {fear_now}. \"[I cannot do it|I am too afraid],\" {Hhe} "
            "thought. [But then {Hhe} thought of {F}.|But {F} needed {Hhim}.] {HHe} took a deep breath and [counted to three|"
            "closed {Hhis} eyes for a moment], and then {Hhe} went, [step by step|slowly, one step after the other].",
            "[There was|And there was] {F}, with {Fhis} foot caught [under a root|between two stones]. \"You came!\" said {F}. {H} "
            "[pulled and pulled|lifted and pulled] until {Fhis} foot was free. Together they went home, and on the way {H} noticed "
            "that {Hhe} was [not afraid any more|much less afraid than before].",
            "\"Were you not afraid?\" asked {F}. \"[Yes, I was|Very much],\" said {H}. \"But [you were more important than my "
            "fear|I wanted to help you more than I wanted to run away].\"",
        ],
        "summary": ["{H} {Hthekind} was afraid of {fear}. But when {F} {Fthekind} needed help, {H} went anyway and saved {Fhim}."],
    },
    "share": {
        "beats": [
            "One {day} {H} had {afood}, and nothing else to eat. {HHe} was [very hungry|as hungry as a wolf]. {HHe} sat down "
            "{spot1} and [was just about to eat|opened {Hhis} bag].",
            "[Just then|At that moment] {Fakind} came along the path. It was {F}. {FHe} looked [thin and tired|tired and cold]. \"I have not eaten "
            "since yesterday,\" said {F}. <\"Could you spare a little?\">",
            "{H} looked at the {food}. [It was not very much.|It was hardly enough for one.] {HHe} thought for a moment. "
            "\"[Sit down|Come and sit with me],\" {Hhe} said. \"[Half of it is yours.|There is enough for two if we are both a "
            "little hungry.]\" So they shared the {food}, <and they talked and laughed,> and it tasted better than ever.",
            "[A few days later|The next week] a [great storm|heavy snow] came, and {H} had [no food at all|nothing left to eat]. "
            "Then there was a knock. There stood {F} with a [big|heavy] basket. \"[You shared with me when you had little|I have "
            "not forgotten your kindness],\" said {F}. \"Now I have much, and I will share it with you.\"",
        ],
        "summary": ["{H} {Hthekind} shared {afood} with hungry {F}. Later, when {H} had nothing to eat, {F} {Fthekind} brought {Hhim} food."],
    },
    "build": {
        "beats": [
            "{H} had a dream: {Hhe} wanted to build {abuilt}. [Everyone laughed.|The others shook their heads.] \"[You are "
            "too small for that|That will never work],\" they said. <But {H} did not listen.>",
            "{HHe} [worked|hammered and sawed] all day. In the evening the {built} was ready. But when {H} tried it, [it fell "
            "apart|it broke in two] with a loud crack. {H} [sat among the pieces|looked at the pieces] and [was close to tears|"
            "felt very foolish].",
            "\"[What went wrong|What happened]?\" asked {F} {Fthekind}, who had [watched it all|heard the noise]. \"I do not know,\" said "
            "{H}. \"Then let us find out,\" said {F}. They looked at every piece, and they saw that the [ropes|nails] had been "
            "too [thin|short].",
            "[The next morning|The next day] they began again. This time {H} measured everything twice, and {F} held the [boards|poles]. "
            "It took them {number} days. <Once it rained, and they had to wait.> [But they did not give up.|Step by step it grew.]",
            "At last the {built} was finished, and [it held|it worked]! [All the others came to look.|Soon everybody wanted to "
            "try it.] \"How did you do it?\" they asked. \"[We made a mistake first|First we did it wrong],\" said {H}, \"and "
            "then we [learned from it|did it better].\"",
        ],
        "summary": ["{H} {Hthekind} wanted to build {abuilt}. The first one broke, but with the help of {F} {Fthekind} the second one worked."],
    },
    "way_home": {
        "beats": [
            "One {day} {H} saw [a butterfly|a white feather in the wind|a bright light far away] and followed it. {HHe} went "
            "on and on, and did not look back. When {Hhe} stopped at last, [everything looked strange|{Hhe} did not know where "
            "{Hhe} was].",
            "\"Where is the way home?\" said {H}. The sun went down, and it grew [cold|dark]. {H} called, but "
            "nobody answered. <{HHe} wished that {Hhe} had told someone where {Hhe} was going.>",
            "[Then|After a while] {H} met {Fakind}. \"My name is {F},\" said {Fthekind}. \"Are you lost?\" {H} nodded. \"[When I "
            "am lost|When I do not know the way],\" said {F}, \"I [look for the brightest star|follow the water|climb up and look for lights]. It always "
            "shows me the way.\"",
            "[So they walked|They walked] side by side through the night. {F} told [funny stories|stories], and {H} forgot to be "
            "afraid. <Once they heard a strange noise, but it was only the wind.> And [then|at last], far away, {H} saw [a light in a window|the "
            "smoke of a chimney]. \"That is my home!\" {Hhe} cried.",
            "[There was warm soup|There were warm blankets and hot tea] for both of them, and {F} stayed for the night. \"Next "
            "time,\" said {H}, \"I will [mark my way|tell someone where I go]. But I am glad that I met you.\"",
        ],
        "summary": ["{H} {Hthekind} went too far and got lost. {F} {Fthekind} showed {Hhim} how to find the way home."],
    },
    "honesty": {
        "uses": "thing",
        "beats": [
            "One {day} {H} visited {Hhis} friend {F} {Fthekind}. On the table stood {athing}. {F} loved it very much. \"Please do not "
            "touch it,\" said {F}, and went out to fetch some [wood|water].",
            "But {H} [could not resist|only wanted to look at it]. {HHe} took the {noun} in {Hhis} hands, and then it slipped and fell. "
            "[Crack!|There was a terrible noise.] It was broken. {H} [quickly hid the pieces|put the pieces under the bed].",
            "When {F} came back, {Fhe} looked around. \"Where is my {noun}?\" {Fhe} asked. \"I do not know,\" said {H}. {H} went home, but "
            "{Hhe} [could not sleep|could not eat]. <The lie lay in {Hhis} stomach like a stone.>",
            "[The next morning|Early the next day] {H} ran back to {F}. \"I broke your {noun},\" {Hhe} said, \"and then I lied to "
            "you. I am so sorry.\" {F} was silent for a while. \"[I am sad about the {noun}|The {noun} was dear to me],\" {Fhe} said, "
            "\"but I am glad that you told me the truth.\"",
            "Then they [sat down and glued the pieces together|mended the {noun} together], piece by piece. [One could still see the cracks,|It "
            "was not as beautiful as before,] but {F} liked it [even more|just as much], for it [reminded {Fhim} of an honest friend|told a "
            "story now].",
        ],
        "summary": ["{H} {Hthekind} broke the {noun} of {F} {Fthekind} and lied about it. The next day {Hhe} told the truth, and they mended it together."],
    },
    "race": {
        "beats": [
            "Every year there was a great race, and {H} had [trained for months|run every morning to get ready]. "
            "The fastest runner of all was {F} {Fthekind}, who had won {number} times. <\"You will never beat me,\" {F} always said.>",
            "On the day of the race everyone came to watch. \"Ready, steady, go!\" They ran [like the wind|as fast as they could]. {F} was in front, "
            "and {H} was close behind. <The crowd cheered.>",
            "Then, {spot1}, {F} [stumbled|slipped] and fell. \"My leg!\" {Fhe} cried. {H} could see the finish. {HHe} only had to "
            "run on, and {Hhe} would win. [But {H} stopped.|{H} slowed down, and then {Hhe} stopped.]",
            "\"[What are you doing|Why do you stop]?\" asked {F}. \"You could win!\" \"[A prize is only a prize|There will be "
            "another race],\" said {H}. \"Lean on me.\" So they went on together, very slowly, and they crossed the line as the last "
            "of all.",
            "[For a moment it was quiet.|Nobody said a word at first.] Then everyone began to clap, louder than they had for the winner. \"[I was "
            "wrong about you|You have beaten me after all],\" said {F}, and {Fhe} was not proud any more.",
        ],
        "summary": ["In a race {F} {Fthekind} fell, and {H} {Hthekind} stopped to help. They came in last, but everyone cheered for them."],
    },
    "noise": {
        "beats": [
            "One night {H} woke up. There was a strange noise. [Tap, tap, tap.|Scratch, scratch, scratch.|Hoo, hoo, hoo.] It came from somewhere {spot1}. "
            "{H} pulled the blanket over {Hhis} head. <\"Perhaps it is a monster,\" {Hhe} thought.>",
            "The next night the noise was there again, and the night after that. [{H} could not sleep at all.|{H} grew more and more tired.] \"[This "
            "must end|I must know what it is],\" {Hhe} said. {HHe} lit a [candle|lamp] and went out [on the tips of {Hhis} toes|very quietly].",
            "[There, {spot1}, sat|And what did {Hhe} see? There sat] a very small {Fkind}. \"[Please do not hurt me|Please do not be angry],\" said {Fthekind}. \"My "
            "name is {F}. I am all alone, and [I was looking for something to eat|I was trying to build a house].\"",
            "{H} had to laugh. \"And I thought you were a monster!\" \"And I thought you were one,\" said {F}<, and now both of them "
            "laughed>. {H} [gave {F} a piece of bread|made some warm milk], and they talked until the sun came up.",
            "After that {F} came to live with {H}. [At night it was quiet|The nights were quiet now], and if there was a noise, {H} [only turned over and "
            "slept on|knew who it was].",
        ],
        "summary": ["{H} {Hthekind} heard a strange noise every night. It was only little {F} {Fthekind}, who was lonely, and they became friends."],
    },
    "gift": {
        "uses": "thing",
        "beats": [
            "It was the day before {F}'s birthday. {F} {Fthekind} was the best friend of {H}, and {Fhe} had always wished for {athing}. But {H} "
            "had [no money|only two small coins]. <{HHe} turned {Hhis} pockets inside out, but there was nothing in them.>",
            "{H} went to {T}, {Tplainkind} who lived {spot1}. \"Can you help me to find a present?\" {Hhe} asked. \"I cannot pay, but I can work.\" {T} [smiled|"
            "thought about it]. \"[Sweep my house and carry my wood|Help me in the garden today],\" said {T}, \"and I will show you how to make "
            "{anoun} yourself.\"",
            "So {H} worked all day, and in the evening {T} kept the promise. {H} [worked by candlelight|cut and glued and painted] until late. The "
            "{noun} was a little crooked, [but it was finished|but it was made with love].",
            "On the birthday there were many presents, large and small. Then {F} opened the one from {H}. \"[Did you make this yourself|You made this for "
            "me]?\" {Fhe} asked. {H} [nodded and blushed|nodded]. \"It is [a bit crooked|not perfect],\" {Hhe} said. {F} held the {thing} close. \"[It is the best "
            "present of all|I like it best of all],\" said {F}.",
        ],
        "summary": ["{H} {Hthekind} had no money for a birthday present. So {Hhe} worked for {T} and made {athing} for {F}, who liked it best of all."],
    },
    "seed": {
        "beats": [
            "One {day} {H} found a small brown seed {spot1}. \"I wonder what you will be,\" said {H}, and {Hhe} planted it in the ground. "
            "{HHe} gave it water and sat down to wait.",
            "[Nothing happened.|The earth stayed bare.] The next day {H} came back, and the day after, and every day for a [week|month]. \"[It is asleep|Perhaps it is "
            "a stone and not a seed],\" said {H}. {HHe} wanted to dig it up.",
            "\"[Wait|Do not do that],\" said {F} {Fthekind}. \"[Under the ground it is working hard|A seed needs its time]. You cannot see it, but it grows in the "
            "dark.\" <\"How long will it take?\" asked {H}. \"As long as it takes,\" said {F}.> So {H} gave it water again, and waited.",
            "And one morning there was a tiny green tip! {H} [shouted with joy|jumped into the air]. It grew, leaf by leaf, and it became {aflower}, the "
            "[finest|tallest|most beautiful] one {in_place}. <Bees came, and birds sang beside it.>",
            "\"[I almost dug it up|I almost gave up],\" said {H}. \"But you did not,\" said {F}, and they sat down [together|in its shade] and [looked at it for a long "
            "time|were happy].",
        ],
        "summary": ["{H} {Hthekind} planted a seed and wanted to give up when nothing happened. {F} {Fthekind} told {Hhim} to wait, and it became {aflower}."],
    },
    "storm": {
        "beats": [
            "One {day} the sky turned black. A great storm came [over the hills|from the west], and the rain fell like a wall. {H} closed the door and "
            "[lit a lantern|made a fire]. <It was warm inside, and the wind howled outside.>",
            "Then {H} heard a cry. [It was|It came from] {F} {Fthekind}, who was out there in the storm and could not find the way. {H} looked through the window, but there "
            "was only darkness. \"{F} will never see my house,\" {Hhe} thought.",
            "So {H} took the biggest lantern, climbed up [on the roof|as high as {Hhe} could], and swung the light from side to side. [The wind pulled at "
            "{Hhim}.|The rain ran into {Hhis} eyes.] {HHis} arms grew tired, but {Hhe} did not stop. \"Here!\" {Hhe} shouted. \"Come here!\"",
            "Far away {F} saw a small light that danced in the dark. {FHe} walked towards it, [step by step|against the wind], and at last {Fhe} stood at the door, wet and "
            "cold, but safe. <{H} wrapped {Fhim} in a blanket.>",
            "In the morning the storm was over, and the sun shone on a clean world. \"Your light saved me,\" said {F}. <\"It was only a small "
            "one,\" said {H}.> \"[A small light is enough when it is dark|Small lights are the ones I remember],\" said {F}.",
        ],
        "summary": ["In a great storm {F} {Fthekind} lost the way. {H} {Hthekind} swung a lantern in the rain until {F} found the house and was safe."],
    },
    "newcomer": {
        "beats": [
            "One {day} somebody new arrived: {Fakind} named {F}. [Nobody knew where {Fhe} came from.|{FHe} came from a land far away.] {FHe} spoke [in a strange way|very little], and "
            "{Fhe} always sat alone {spot1}. <The others whispered and kept away.>",
            "\"[Do not go there|Leave {Fhim} alone],\" they said to {H}. \"{FHe} is not like us.\" But {H} saw that {F} looked sad. <{H} remembered how it felt to be "
            "alone.> So one morning {Hhe} walked over and said: \"Hello. My name is {H}. [Would you like to play|May I sit here]?\"",
            "{F} looked up in surprise, and then {Fhe} smiled for the first time. {FHe} [knew games|knew songs] that nobody had ever heard of. [One was played with {number} "
            "stones.|One of them was about the sea at night.] {H} laughed so loudly that the others came to look.",
            "\"[Can we play too|May we join you]?\" they asked. \"Of course,\" said {F}. Soon all of them sat in a circle, and {F} [taught them everything|showed them how it was "
            "done]. <By evening nobody remembered that {Fhe} was new.>",
            "\"Why did you come over to me?\" {F} asked when it grew dark. \"[Because you were alone|I was curious],\" said {H}, \"and because [everyone is new "
            "somewhere|a friend is only a stranger you have not spoken to].\"",
        ],
        "summary": ["{F} {Fthekind} was new and always alone. {H} {Hthekind} said hello, and soon everyone played the games that {F} knew."],
    },
    "wish": {
        "uses": "thing",
        "beats": [
            "One {day} {H} found {athing} {spot1}. When {Hhe} picked it up, it began to [glow|hum], and a voice said: \"You have one wish. Think well before you "
            "use it.\"",
            "{H} [thought and thought|walked up and down]. \"I could wish for [gold|a castle],\" {Hhe} said. \"Or I could wish that I could fly!\" <{HHe} "
            "took the {noun} and went home to think.>",
            "On the way {Hhe} met {F} {Fthekind}. {F} was [very ill|weak and pale] and could not get up any more. \"[I am so tired|I wish that I could see the spring once "
            "more],\" said {F} quietly. {H} held {Fhis} hand and was silent.",
            "Then {H} took out the {thing}. {HHe} did not think of gold any more. \"I wish that {F} is well again,\" {Hhe} said. The {noun} [shone once, very brightly|gave a bright "
            "light], and then it was [only a common {noun}|dark]. And {F} [sat up|opened {Fhis} eyes] and smiled.",
            "\"[You could have been rich|You gave away your only wish],\" said {F}. \"[I am rich|I have what I want],\" said {H}. \"I have a friend.\"",
        ],
        "summary": ["{H} {Hthekind} found {athing} that granted one wish. {HHe} used it to make {F} {Fthekind} well again."],
    },
    "skill": {
        "beats": [
            "{H} wanted to learn to {skill}. {HHe} had once seen [an old master|a traveller] do it, and since then {Hhe} thought of nothing else. But the "
            "first try was terrible. <Even the [birds|neighbours] [fled|laughed].>",
            "So {H} went to {T}, {Tplainkind} who lived {spot1}. \"Please teach me,\" said {H}. \"[I can show you how|I can teach you],\" said {T}, \"but the work is "
            "yours. Come every day.\" And {H} came every day.",
            "[It was hard.|It was harder than {Hhe} had thought.] After a week {H} was not much better. After a month {Hhe} was a little better. \"[I will never learn it|I am "
            "too stupid],\" {Hhe} said. \"You are better than yesterday,\" said {T}. \"That is all one can ask for.\"",
            "[Then the great feast came.|In autumn there was a great feast.] The one who was to perform had fallen ill, and everyone was sad. \"I can do it,\" "
            "said {H}, [and {Hhis} knees shook|in a small voice]. {HHe} stepped forward and {did}, <at first too fast, and then more calmly,> and all grew quiet.",
            "When it was over, they [cheered|clapped for a long time]. {F} {Fthekind} ran up to {Hhim}. \"How did you learn that?\" {Fhe} asked. {H} looked at {T} and smiled. \"[A little every "
            "day|One day after the other],\" {Hhe} said.",
        ],
        "summary": ["{H} {Hthekind} wanted to learn to {skill}. {T} taught {Hhim}, and after a lot of practice {H} did it at the great feast."],
    },
    "treasure": {
        "uses": "thing",
        "beats": [
            "One {day} {H} found an old map {spot1}. It showed the {place}, and there was a red cross on it. \"A treasure!\" {Hhe} whispered, and {Hhe} ran to "
            "{F} {Fthekind}. <\"Will you come with me?\" \"Of course I will,\" said {F}.>",
            "The map said: \"[Start where you are, and count a hundred steps|Follow the morning sun].\" So they did. <They walked for a long time, and they had to be careful.> Soon they stood "
            "before a [deep ditch|locked gate]. \"[I can jump well|I am strong],\" said {F}, \"[and you can think well|and you are clever]. Together we can do it.\" {H} found the trick, and {F} did the rest.",
            "Then they came to a riddle, cut into a stone: \"What grows when you share it?\" {F} thought of [bread|gold], but that was wrong. {H} thought for a long time. "
            "\"[Joy|Happiness]!\" {Hhe} said at last, and the stone moved to one side.",
            "There, {spot2}, stood a chest. They opened it with trembling hands. There was no gold in it. There was only {athing} and a letter. \"Whoever finds this,\" said the letter, \"has had an adventure with a friend. That is the treasure.\"",
            "{F} was [disappointed|silent] for a moment, but then {Fhe} began to laugh, and {H} laughed too. They took the {noun} home, and [they looked at it often|they kept it for many "
            "years].",
        ],
        "summary": ["{H} {Hthekind} and {F} {Fthekind} followed an old map and solved a riddle. In the chest there was {athing}, but the real treasure was their adventure."],
    },
    "clever": {
        "beats": [
            "Near by there lived a [greedy wolf|mean giant|bad-tempered troll] who [took food from everyone|let nobody cross the bridge without paying]. All were afraid of him. <\"Someone has to do "
            "something,\" they said, but nobody did.>",
            "One {day} it was {F} {Fthekind} who was caught. \"[Now you are mine|I have you now]!\" said the villain. \"Tomorrow I shall eat you.\" When {H} heard of it, {Hhe} [was angry|did not run away]. "
            "\"I am not strong,\" {Hhe} said, \"but I can think.\"",
            "{H} went to the villain's house. \"[Good evening|Good day],\" {Hhe} said. \"I have heard that you are the strongest of all. But surely you cannot [squeeze into that small barrel|carry this great rock to the top of the "
            "hill].\" \"I can do anything!\" roared the villain. <\"I do not believe it,\" said {H}.>",
            "So the villain [tried it at once, and soon he was stuck and could not move|tried it until he was so tired that he fell asleep]. {H} quickly took the key and opened the door for {F}. They ran "
            "as fast as they could.",
            "The villain was so ashamed that he [moved far away|never came back]. [Everybody danced.|There was a great feast.] \"You have no sharp teeth and no long claws,\" said {F}. "
            "\"[No|That is true],\" said {H}, \"but I have a good head.\"",
        ],
        "summary": ["A villain caught {F} {Fthekind}. {H} {Hthekind} was not strong but clever, and {Hhe} played a trick on him and set {F} free."],
    },
    "together": {
        "beats": [
            "One {day} a great [rock|tree] fell across the only path. [Nobody could go to the well any more.|Now nobody could go out or come in.] {H} pushed with all {Hhis} strength, but it did not "
            "move at all.",
            "Then {F} {Fthekind} came. \"Let me try,\" said {F}, and {Fhe} pushed and pulled, but it did not move either. <\"It is too heavy,\" said {F}, and sat down.> After that came {T}, {Tplainkind}, and tried too. It was "
            "no use.",
            "{H} looked at the three of them. \"[We have each tried alone|Each of us has tried it alone],\" {Hhe} said. \"What if we all push at the same time?\" <\"I am too small,\" said one. \"I am too old,\" said another. "
            "\"That does not matter,\" said {H}.>",
            "So they stood side by side. \"One, two, three!\" called {H}. [At first nothing happened.|They pushed until their faces were red.] Then it [shook|moved a little], and then it rolled away "
            "[with a crash|down the hill].",
            "They fell into the grass and laughed. \"I could not do it,\" said {F}. \"And I could not do it,\" said {T}. \"But we could,\" said {H}.",
        ],
        "summary": ["A heavy thing blocked the path, and nobody could move it alone. {H} {Hthekind} had the idea to push together with {F} and {T}, and it worked."],
    },
    "dream": {
        "uses": "thing",
        "beats": [
            "One night {H} dreamed of {athing} that [could speak|shone like the moon]. \"[Look for me|Come and find me] {spot1},\" it said. When {H} woke up, {Hhe} could not forget the dream.",
            "{HHe} told {F} {Fthekind} about it. \"Dreams are only dreams,\" said {F}. \"[But it costs nothing to look|Still, I would like to know].\" So the two of them set out. <They took bread and water with them, and they "
            "sang on the way.>",
            "They looked {spot1}, and they found nothing but [stones|old leaves]. They looked {spot2} too. {H} was about to give up, when {F} said: \"Listen!\" Somebody was crying [softly|near by]. It was {T}, {Tplainkind}, who had "
            "fallen and could not get up.",
            "They helped {T} up and brought {Thim} home. <It was a long way, and they had to rest {number} times.> \"How did you find me?\" asked {T}. \"Nobody ever comes by.\" {H} told about the dream. {T} [smiled|nodded slowly] and opened a "
            "drawer. In it lay {athing}.",
            "\"[Take it|It is yours now],\" said {T}. \"I think that it called you.\" {H} and {F} looked at each other. \"Dreams are only dreams,\" said {F} on the way home, \"but [some of them are good ones|I am glad that you had this "
            "one].\"",
        ],
        "summary": ["{H} {Hthekind} dreamed of {athing} and set out with {F} {Fthekind} to find it. They found {T}, who needed help and gave it to them."],
    },
}

MORALS = {
    "lost": ["two can search better than one", "a good friend is worth more than any treasure", "a trouble shared is half a trouble"],
    "fear": ["to be brave is to be afraid and to go on", "courage grows when a friend needs you", "fear gets smaller when you walk towards it"],
    "share": ["what you share comes back to you", "kindness is never lost", "half a meal with a friend is better than a whole one alone"],
    "build": ["mistakes are good teachers", "you must not give up after the first try", "a good plan is half of the work"],
    "way_home": ["it is wise to ask for help", "there is always a way home", "you should tell your friends where you go"],
    "honesty": ["the truth is lighter than a lie", "an honest word can mend what is broken", "it is better to tell the truth at once"],
    "race": ["helping is better than winning", "there are things that count more than a prize"],
    "noise": ["many monsters are small when you see them in the light", "it is good to look before you are afraid"],
    "gift": ["a gift made with love is the best gift", "it is not the price that makes a present dear"],
    "seed": ["good things need time", "patience is a kind of strength", "much grows where nobody can see it"],
    "storm": ["even a small light can save someone", "it is good to keep a light burning for others"],
    "newcomer": ["a stranger can become a friend", "one hello can change everything", "everyone has something to teach"],
    "wish": ["a friend is worth more than gold", "the best wishes are for others"],
    "skill": ["a little every day becomes a lot", "practice makes the master"],
    "treasure": ["the way is a part of the treasure", "the best treasures cannot be carried home in a bag"],
    "clever": ["a good head is better than strong arms", "pride makes even the strong weak"],
    "together": ["together we can do what none of us can do alone", "many small hands can move a mountain"],
    "dream": ["it is worth following a dream", "who helps others finds more than he looked for"],
}
