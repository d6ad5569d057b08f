# vitrine.cdx.json beside the program: what it is made of. Versions are for systems without Debian's packages.
find_path(VITRINE_CLI11_HEADERS CLI/CLI.hpp)
set(parts Boost=${Boost_VERSION}=libboost_json.so fmt=${fmt_VERSION}=libfmt.so
    OpenSSL=${OPENSSL_VERSION}=libssl.so OpenSSL=${OPENSSL_VERSION}=libcrypto.so
    PCRE2=${PCRE2_VERSION}=libpcre2-8.so utf8proc=${UTF8PROC_VERSION}=libutf8proc.so
    GCC=${CMAKE_CXX_COMPILER_VERSION}=libstdc++.so GCC=${CMAKE_CXX_COMPILER_VERSION}=libgcc_s.so
    CLI11=${CLI11_VERSION}=${VITRINE_CLI11_HEADERS}/CLI/CLI.hpp)
foreach(folder ${Boost_INCLUDE_DIRS})
  list(APPEND parts Boost=${Boost_VERSION}=${folder}/boost/version.hpp)
endforeach()
if(VITRINE_CUDA)
  list(APPEND parts CUDA=${CUDAToolkit_VERSION}=${CUDAToolkit_BIN_DIR}/nvcc)
endif()
if(VITRINE_EMBED_MODELS)
  file(GLOB models CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models/*.gguf)
  foreach(model ${models})
    get_filename_component(stem ${model} NAME_WE)
    list(APPEND parts ${stem}==${model})
  endforeach()
endif()
if(VITRINE_UI_KIND STREQUAL "built")
  # The one package whose code is in the page.
  file(READ ${CMAKE_SOURCE_DIR}/ui/package.json package)
  string(JSON version GET "${package}" devDependencies svelte)
  list(APPEND parts svelte=${version}=${CMAKE_SOURCE_DIR}/ui/package.json)
endif()
set_property(GLOBAL PROPERTY VT_SBOM_PARTS ${parts})  # for the test
add_custom_command(TARGET vitrine POST_BUILD VERBATIM COMMENT "Writing vitrine.cdx.json"
                   BYPRODUCTS ${CMAKE_BINARY_DIR}/vitrine.cdx.json
                   COMMAND ${CMAKE_SOURCE_DIR}/scripts/sbom.sh $<TARGET_FILE:vitrine> ${PROJECT_VERSION}
                           ${CMAKE_BINARY_DIR}/vitrine.cdx.json ${parts})
