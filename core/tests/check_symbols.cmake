# What is compiled for one CPU must not be taken for all: every function of such an object that the
# linker may share with others (weak, W) has the lanes of this CPU in its name.
execute_process(COMMAND ${NM} -C --defined-only ${OBJECT} OUTPUT_VARIABLE listed RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "nm: ${failed}")
endif()
string(REPLACE "\n" ";" listed "${listed}")
foreach(line IN LISTS listed)
  if(line MATCHES " [WVu] " AND NOT line MATCHES "Lanes<${WIDTH},")
    message(FATAL_ERROR "shared with code for other CPUs: ${line}")
  endif()
endforeach()
