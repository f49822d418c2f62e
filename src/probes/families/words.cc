#include <algorithm>
#include <string>
#include <vector>

#include "probes/families/draws.h"
#include "probes/phrase.h"

namespace molly::probes {

namespace {

struct Topic {
  Word name;
  std::array<Word, 16> words;
};

constexpr std::array<Topic, 8> topics{{
    {{"food", "comida"},
     {{{"bread", "pan"},
       {"rice", "arroz"},
       {"cheese", "queso"},
       {"soup", "sopa"},
       {"egg", "huevo"},
       {"salt", "sal"},
       {"butter", "mantequilla"},
       {"apple", "manzana"},
       {"onion", "cebolla"},
       {"sugar", "azúcar"},
       {"meat", "carne"},
       {"lemon", "limón"},
       {"bean", "frijol"},
       {"cake", "pastel"},
       {"honey", "miel"},
       {"potato", "papa"}}}},
    {{"animals", "animales"},
     {{{"dog", "perro"},
       {"cat", "gato"},
       {"horse", "caballo"},
       {"cow", "vaca"},
       {"sheep", "oveja"},
       {"goat", "cabra"},
       {"wolf", "lobo"},
       {"lion", "león"},
       {"bear", "oso"},
       {"rabbit", "conejo"},
       {"mouse", "ratón"},
       {"duck", "pato"},
       {"frog", "rana"},
       {"tiger", "tigre"},
       {"eagle", "águila"},
       {"snake", "serpiente"}}}},
    {{"clothes", "ropa"},
     {{{"shirt", "camisa"},
       {"shoe", "zapato"},
       {"hat", "sombrero"},
       {"coat", "abrigo"},
       {"skirt", "falda"},
       {"sock", "calcetín"},
       {"glove", "guante"},
       {"scarf", "bufanda"},
       {"belt", "cinturón"},
       {"dress", "vestido"},
       {"boot", "bota"},
       {"jacket", "chaqueta"},
       {"trousers", "pantalón"},
       {"tie", "corbata"},
       {"sandal", "sandalia"},
       {"vest", "chaleco"}}}},
    {{"body", "cuerpo"},
     {{{"hand", "mano"},
       {"foot", "pie"},
       {"head", "cabeza"},
       {"arm", "brazo"},
       {"leg", "pierna"},
       {"eye", "ojo"},
       {"ear", "oreja"},
       {"nose", "nariz"},
       {"mouth", "boca"},
       {"neck", "cuello"},
       {"finger", "dedo"},
       {"knee", "rodilla"},
       {"back", "espalda"},
       {"skin", "piel"},
       {"bone", "hueso"},
       {"heart", "corazón"}}}},
    {{"house", "casa"},
     {{{"table", "mesa"},
       {"chair", "silla"},
       {"bed", "cama"},
       {"door", "puerta"},
       {"window", "ventana"},
       {"lamp", "lámpara"},
       {"roof", "techo"},
       {"wall", "pared"},
       {"kitchen", "cocina"},
       {"stairs", "escalera"},
       {"carpet", "alfombra"},
       {"mirror", "espejo"},
       {"shelf", "estante"},
       {"curtain", "cortina"},
       {"oven", "horno"},
       {"sofa", "sofá"}}}},
    {{"transport", "transporte"},
     {{{"car", "coche"},
       {"train", "tren"},
       {"plane", "avión"},
       {"bus", "autobús"},
       {"bicycle", "bicicleta"},
       {"ship", "barco"},
       {"truck", "camión"},
       {"tram", "tranvía"},
       {"taxi", "taxi"},
       {"canoe", "canoa"},
       {"ferry", "ferri"},
       {"subway", "metro"},
       {"rocket", "cohete"},
       {"tractor", "tractor"},
       {"helicopter", "helicóptero"},
       {"motorbike", "moto"}}}},
    {{"weather", "tiempo"},
     {{{"rain", "lluvia"},
       {"snow", "nieve"},
       {"wind", "viento"},
       {"storm", "tormenta"},
       {"cloud", "nube"},
       {"fog", "niebla"},
       {"sun", "sol"},
       {"ice", "hielo"},
       {"thunder", "trueno"},
       {"hail", "granizo"},
       {"frost", "helada"},
       {"heat", "calor"},
       {"drought", "sequía"},
       {"breeze", "brisa"},
       {"rainbow", "arcoíris"},
       {"hurricane", "huracán"}}}},
    {{"music", "música"},
     {{{"song", "canción"},
       {"guitar", "guitarra"},
       {"piano", "piano"},
       {"drum", "tambor"},
       {"flute", "flauta"},
       {"violin", "violín"},
       {"choir", "coro"},
       {"melody", "melodía"},
       {"rhythm", "ritmo"},
       {"concert", "concierto"},
       {"trumpet", "trompeta"},
       {"opera", "ópera"},
       {"harp", "arpa"},
       {"singer", "cantante"},
       {"orchestra", "orquesta"},
       {"chord", "acorde"}}}},
}};

constexpr std::array<Word, 24> verbs{
    {{"eat", "comer"},     {"write", "escribir"},  {"sing", "cantar"},    {"think", "pensar"},
     {"bring", "traer"},   {"know", "saber"},      {"speak", "hablar"},   {"read", "leer"},
     {"go", "ir"},         {"listen", "escuchar"}, {"learn", "aprender"}, {"sell", "vender"},
     {"choose", "elegir"}, {"forget", "olvidar"},  {"grow", "crecer"},    {"lose", "perder"},
     {"pay", "pagar"},     {"send", "enviar"},     {"teach", "enseñar"},  {"understand", "entender"},
     {"arrive", "llegar"}, {"carry", "llevar"},    {"follow", "seguir"},  {"remember", "recordar"}}};
constexpr std::array<Word, 24> adjectives{
    {{"big", "grande"},    {"small", "pequeño"},     {"happy", "feliz"},   {"sad", "triste"},
     {"tall", "alto"},     {"cheap", "barato"},      {"rich", "rico"},     {"strong", "fuerte"},
     {"weak", "débil"},    {"young", "joven"},       {"old", "viejo"},     {"new", "nuevo"},
     {"wide", "ancho"},    {"beautiful", "hermoso"}, {"ugly", "feo"},      {"heavy", "pesado"},
     {"soft", "blando"},   {"bitter", "amargo"},     {"angry", "enojado"}, {"tired", "cansado"},
     {"famous", "famoso"}, {"careful", "cuidadoso"}, {"deep", "profundo"}, {"expensive", "caro"}}};
constexpr std::array<Word, 3> classes{{{"noun", "sustantivo"}, {"verb", "verbo"}, {"adjective", "adjetivo"}}};

constexpr Phrases topic_questions{{"Topic of: {0}", "What are these about? {0}", "One topic for: {0}", "{0}: topic?"},
                                  {"Tema de: {0}", "¿De qué tratan? {0}", "Un tema para: {0}", "{0}: ¿tema?"}};
constexpr Phrases class_questions{
    {"Which word is the {1}: {0}?", "Find the {1}: {0}", "The {1} among {0}?", "{0}: which one is the {1}?"},
    {"¿Qué palabra es el {1}: {0}?", "Busca el {1}: {0}", "¿El {1} entre {0}?", "{0}: ¿cuál es el {1}?"}};

std::string listed(const std::vector<const Word*>& words, Language language) {
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const Word* word : words) texts.emplace_back(word->in(language));
  return join(texts, ", ");
}

}  // namespace

Draft draw_topic(Random& random, Language language) {
  const Topic& topic = random.pick(topics);
  std::vector<const Word*> words;
  for (const std::size_t index : distinct(random, topic.words.size(), 3)) words.push_back(&topic.words[index]);
  std::vector<const Word*> in_order = words;
  std::ranges::sort(in_order);
  return {listed(in_order, Language::english), say(random, language, topic_questions, {listed(words, language)}),
          std::string(topic.name.in(language))};
}

Draft draw_word_class(Random& random, Language language) {
  const Topic& topic = random.pick(topics);
  const std::array<const Word*, 3> by_class{&random.pick(topic.words), &random.pick(verbs), &random.pick(adjectives)};
  std::vector<const Word*> shuffled;
  for (const std::size_t index : distinct(random, by_class.size(), by_class.size()))
    shuffled.push_back(by_class[index]);
  const std::size_t asked = random.below(classes.size());
  const std::string key =
      fill("{0}: {1}", {classes[asked].english, listed({by_class.begin(), by_class.end()}, Language::english)});
  return {key, say(random, language, class_questions, {listed(shuffled, language), classes[asked].in(language)}),
          std::string(by_class[asked]->in(language))};
}

}  // namespace molly::probes
