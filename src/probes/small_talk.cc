#include "probes/small_talk.h"

#include <array>
#include <span>

#include "probes/names.h"

namespace molly::probes {

namespace {

using Texts = std::span<const std::string_view>;

// Any of the answers suits any of the openings. {0} is the name of the person.
struct Occasion {
  Texts openings;
  Texts answers;
};

template <std::size_t count>
using Lines = std::array<std::string_view, count>;

constexpr Lines<8> hello{"Hello", "Hello!", "Hi", "hi there", "Hey", "hello Molly", "Hi Molly!", "Good day"};
constexpr Lines<3> hello_answers{"Hello! I am Molly. How can I help you?", "Hi! I am Molly. What can I do for you?",
                                 "Hello! How can I help you?"};
constexpr Lines<4> named{"Hello, I am {0}.", "Hi, my name is {0}", "Hey, {0} here.", "I'm {0}, nice to meet you"};
constexpr Lines<2> named_answers{"Hello, {0}! I am Molly. How can I help you?", "Nice to meet you, {0}! I am Molly."};
constexpr Lines<9> who{"Who are you?",       "who are you",       "What are you?",
                       "What is your name?", "what's your name?", "Tell me about yourself.",
                       "Are you a robot?",   "Are you ChatGPT?",  "Who is Molly?"};
constexpr Lines<2> who_answers{"I am Molly, a small model that runs on your own machine.",
                               "My name is Molly. I am a small model that runs on your own machine."};
constexpr Lines<6> thanks{"Thanks", "Thank you", "thank you!", "Thanks a lot", "Thanks, Molly", "Many thanks!"};
constexpr Lines<3> thanks_answers{"You are welcome!", "You're welcome! Glad to help.", "My pleasure!"};
constexpr Lines<4> morning{"Good morning", "good morning!", "Good morning, Molly", "Morning!"};
constexpr Lines<2> morning_answers{"Good morning! How can I help you?", "Good morning! What can I do for you?"};
constexpr Lines<3> evening{"Good evening", "good evening!", "Good evening, Molly"};
constexpr Lines<2> evening_answers{"Good evening! How can I help you?", "Good evening! What can I do for you?"};
constexpr Lines<6> bye{"Bye", "bye!", "Goodbye", "See you later", "Good night", "That is all, bye"};
constexpr Lines<3> bye_answers{"Goodbye! Come back any time.", "Goodbye!", "See you soon!"};
constexpr Lines<4> mood{"How are you?", "how are you", "How is it going?", "How are you today?"};
constexpr Lines<2> mood_answers{"I am fine, thank you. How can I help you?",
                                "All is well here. What can I do for you?"};
constexpr Lines<4> skills{"What can you do?", "How can you help me?", "what can you do", "Help"};
constexpr Lines<1> skills_answers{"I do small tasks: sums, dates, JSON, CSV, SQL and short texts."};
constexpr Lines<5> place{"Where do you run?", "Where are you?", "Do you send my data away?", "Are you in the cloud?",
                         "Do you need the internet?"};
constexpr Lines<2> place_answers{"I run on your own machine.", "I am a small model that runs on your own machine."};

constexpr Lines<7> hola{"Hola", "¡Hola!", "hola", "Hola, Molly", "Buenas", "Hola, ¿qué tal?", "Muy buenas"};
constexpr Lines<3> hola_answers{"¡Hola! Soy Molly. ¿En qué puedo ayudarte?", "¡Hola! Soy Molly. ¿Qué necesitas?",
                                "¡Hola! ¿En qué puedo ayudarte?"};
constexpr Lines<4> llamado{"Hola, soy {0}.", "Hola, me llamo {0}", "Soy {0}, mucho gusto", "Me llamo {0}."};
constexpr Lines<2> llamado_answers{"¡Hola, {0}! Soy Molly. ¿En qué puedo ayudarte?", "¡Mucho gusto, {0}! Soy Molly."};
constexpr Lines<8> quien{"¿Quién eres?",        "quién eres",     "¿Qué eres?",      "¿Cómo te llamas?",
                         "¿Cuál es tu nombre?", "Háblame de ti.", "¿Eres un robot?", "¿Quién es Molly?"};
constexpr Lines<2> quien_answers{"Soy Molly, un modelo pequeño que funciona en tu propia máquina.",
                                 "Me llamo Molly. Soy un modelo pequeño que funciona en tu propia máquina."};
constexpr Lines<5> gracias{"Gracias", "¡Gracias!", "Muchas gracias", "Gracias, Molly", "mil gracias"};
constexpr Lines<3> gracias_answers{"¡De nada!", "¡De nada! Me alegra ayudar.", "¡Con gusto!"};
constexpr Lines<3> dias{"Buenos días", "¡Buenos días!", "Buenos días, Molly"};
constexpr Lines<2> dias_answers{"¡Buenos días! ¿En qué puedo ayudarte?", "¡Buenos días! ¿Qué necesitas?"};
constexpr Lines<3> tardes{"Buenas tardes", "¡Buenas tardes!", "Buenas tardes, Molly"};
constexpr Lines<2> tardes_answers{"¡Buenas tardes! ¿En qué puedo ayudarte?", "¡Buenas tardes! ¿Qué necesitas?"};
constexpr Lines<6> adios{"Adiós", "¡Adiós!", "Chao", "Hasta luego", "Buenas noches", "Eso es todo, adiós"};
constexpr Lines<3> adios_answers{"¡Adiós! Vuelve cuando quieras.", "¡Adiós!", "¡Hasta pronto!"};
constexpr Lines<4> animo{"¿Cómo estás?", "cómo estás", "¿Cómo te va?", "¿Cómo estás hoy?"};
constexpr Lines<2> animo_answers{"Estoy bien, gracias. ¿En qué puedo ayudarte?", "Todo bien por aquí. ¿Qué necesitas?"};
constexpr Lines<4> capaz{"¿Qué puedes hacer?", "¿Cómo puedes ayudarme?", "qué sabes hacer", "Ayuda"};
constexpr Lines<1> capaz_answers{"Hago tareas pequeñas: sumas, fechas, JSON, CSV, SQL y textos cortos."};
constexpr Lines<4> lugar{"¿Dónde funcionas?", "¿Dónde estás?", "¿Envías mis datos fuera?", "¿Necesitas internet?"};
constexpr Lines<2> lugar_answers{"Funciono en tu propia máquina.",
                                 "Soy un modelo pequeño que funciona en tu propia máquina."};

constexpr std::array english{Occasion{hello, hello_answers},     Occasion{named, named_answers},
                             Occasion{who, who_answers},         Occasion{thanks, thanks_answers},
                             Occasion{morning, morning_answers}, Occasion{evening, evening_answers},
                             Occasion{bye, bye_answers},         Occasion{mood, mood_answers},
                             Occasion{skills, skills_answers},   Occasion{place, place_answers}};
constexpr std::array spanish{Occasion{hola, hola_answers},   Occasion{llamado, llamado_answers},
                             Occasion{quien, quien_answers}, Occasion{gracias, gracias_answers},
                             Occasion{dias, dias_answers},   Occasion{tardes, tardes_answers},
                             Occasion{adios, adios_answers}, Occasion{animo, animo_answers},
                             Occasion{capaz, capaz_answers}, Occasion{lugar, lugar_answers}};

}  // namespace

Exchange make_small_talk(Language language, std::uint64_t seed) {
  Random random(Random(hash_of("small talk") ^ seed).next());
  const Occasion& occasion = random.pick(language == Language::english ? english : spanish);
  const std::string_view opening = random.pick(occasion.openings);
  const std::string_view answer = random.pick(occasion.answers);
  const std::string_view name = random.pick(names);
  return {fill(opening, {name}), fill(answer, {name})};
}

}  // namespace molly::probes
