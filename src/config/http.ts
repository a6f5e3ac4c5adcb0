/** The part of the configuration that the HTTP server reads. */
import { z } from 'zod'

/** Its variables. */
export const httpVariables = {
  HTTP_KEEP_ALIVE: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, 'must be a number of seconds from 1 to 9999')
    .transform(Number)
    .default(65),
}

const variables = z.object(httpVariables)

/** What the environment decides of it. */
export interface HttpConfig {
  /** How long an idle connection is kept, in seconds: longer than the balancer in front keeps its own, so that none is closed as it is used. */
  readonly keepAliveSeconds: number
}

/** The server's part of the settings. */
export function httpOf({ HTTP_KEEP_ALIVE }: z.output<typeof variables>): HttpConfig {
  return { keepAliveSeconds: HTTP_KEEP_ALIVE }
}
