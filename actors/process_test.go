package actors

const processEnv = "MANTA_TEST_PROCESS"

func processMain() int { return 0 }
