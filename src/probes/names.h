#pragma once

#include <array>
#include <string_view>

#include "probes/phrase.h"

// Proper names and words that several families draw from; ASCII names, so that both languages share them.
namespace molly::probes {

inline constexpr std::array<std::string_view, 40> names{
    "Ana",   "Ben",    "Carla", "David", "Elena", "Frank", "Grace", "Hugo",  "Irene", "Jack",
    "Karen", "Luis",   "Marta", "Nora",  "Oscar", "Paula", "Quinn", "Rosa",  "Sam",   "Tina",
    "Uma",   "Victor", "Wendy", "Xavi",  "Yara",  "Zoe",   "Adam",  "Bella", "Clara", "Diego",
    "Emma",  "Felix",  "Gina",  "Henry", "Ivan",  "Julia", "Kevin", "Laura", "Mario", "Nina"};

inline constexpr std::array<std::string_view, 30> surnames{
    "Adams",  "Baker", "Castro", "Diaz",  "Evans",  "Flores", "Gomez",   "Harris", "Ibarra", "Jones",
    "King",   "Lopez", "Moreno", "Nash",  "Ortiz",  "Perez",  "Quiroga", "Ramos",  "Smith",  "Torres",
    "Urbina", "Vega",  "Walker", "Young", "Zamora", "Clark",  "Silva",   "Rossi",  "Weber",  "Novak"};

inline constexpr std::array<std::string_view, 30> cities{
    "Lima",  "Rome",  "Paris",  "Quito", "Berlin", "Madrid", "Oslo",   "Tokyo",  "Cairo",  "Boston",
    "Delhi", "Milan", "Porto",  "Turin", "Vienna", "Zurich", "Bogota", "Dublin", "Geneva", "Havana",
    "Kyoto", "Lyon",  "Malaga", "Nice",  "Osaka",  "Prague", "Riga",   "Seoul",  "Tunis",  "Warsaw"};

}  // namespace molly::probes
