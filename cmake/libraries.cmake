# Third-party libraries, under the names that folders use in LIBRARIES.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost REQUIRED CONFIG)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(edit REQUIRED IMPORTED_TARGET libedit)
find_package(prometheus-cpp CONFIG REQUIRED)

add_library(lib_asio INTERFACE)  # Boost.Asio and Beast: headers only
target_link_libraries(lib_asio INTERFACE Boost::headers Threads::Threads)
add_library(lib_tls INTERFACE)
target_link_libraries(lib_tls INTERFACE OpenSSL::SSL OpenSSL::Crypto)
add_library(lib_crypto INTERFACE)
target_link_libraries(lib_crypto INTERFACE OpenSSL::Crypto PkgConfig::sodium)
add_library(lib_json INTERFACE)  # glaze: headers only, in /usr/include
# Its parser goes wrong behind errors when it may not throw: malformed files trip its assertions.
add_library(lib_toml INTERFACE)
target_compile_definitions(lib_toml INTERFACE TOML_EXCEPTIONS=1 TOML_HEADER_ONLY=1)
add_library(lib_sql INTERFACE)
if(TARGET SQLite3::SQLite3)
  target_link_libraries(lib_sql INTERFACE SQLite3::SQLite3)
else()
  target_link_libraries(lib_sql INTERFACE SQLite::SQLite3)
endif()
add_library(lib_log INTERFACE)
target_link_libraries(lib_log INTERFACE spdlog::spdlog)
add_library(lib_metrics INTERFACE)
target_link_libraries(lib_metrics INTERFACE prometheus-cpp::core)
add_library(lib_cli INTERFACE)  # CLI11: headers only
add_library(lib_edit INTERFACE)
target_link_libraries(lib_edit INTERFACE PkgConfig::edit)

add_library(lib_ggml INTERFACE)  # tensors and kernels: only for molly-engine
find_library(GGML ggml REQUIRED)
find_library(GGML_BASE ggml-base REQUIRED)
target_link_libraries(lib_ggml INTERFACE ${GGML} ${GGML_BASE})
add_library(lib_llama INTERFACE)  # vocabularies, samplers, grammars: only for molly-engine
find_library(LLAMA llama REQUIRED)
target_link_libraries(lib_llama INTERFACE ${LLAMA} lib_ggml)
add_library(lib_templates INTERFACE)  # minja and nlohmann-json: headers only

find_library(OPENBLAS NAMES openblas PATH_SUFFIXES openblas-pthread REQUIRED)
find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread ${CMAKE_LIBRARY_ARCHITECTURE} ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread REQUIRED)
add_library(lib_blas INTERFACE)  # matrix products of training: only for molly-engine
target_include_directories(lib_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
target_link_libraries(lib_blas INTERFACE ${OPENBLAS})
