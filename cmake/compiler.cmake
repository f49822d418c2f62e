# Flags that every target of Molly shares.
add_library(molly_compiler INTERFACE)
target_compile_options(molly_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion -Wno-sign-conversion
  -Werror -fno-strict-aliasing -fstack-protector-strong)
target_compile_definitions(molly_compiler INTERFACE
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE MOLLY_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 16 reports these inside library headers at -O2 and in coroutine frames: false positives there.
  target_compile_options(molly_compiler INTERFACE
    -Wno-maybe-uninitialized -Wno-dangling-reference -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict -Wno-null-dereference
    -Wno-missing-field-initializers -Wno-tsan -Wno-mismatched-new-delete)
else()
  target_compile_options(molly_compiler INTERFACE -Wno-missing-field-initializers -Wno-missing-designated-field-initializers)
  # A precompiled header out of ccache is older or younger than what it was made from, and good all the same.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
if(MOLLY_SANITIZE)
  # Line tables only, and light optimisation: sanitized Asio and glaze code is unusably slow to build and run at -O0 -g.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -gline-tables-only" CACHE STRING "" FORCE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1" CACHE STRING "" FORCE)
  endif()
  add_compile_options(-fsanitize=${MOLLY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MOLLY_SANITIZE})
  if(MOLLY_FUZZERS)
    # Coverage feedback from the libraries, or else a fuzzer sees no further than its own file.
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
else()
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "" FORCE)
  target_compile_definitions(molly_compiler INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()
target_compile_definitions(molly_compiler INTERFACE _GLIBCXX_ASSERTIONS)
