/** Configuration of the HTTP server. */
import { z } from 'zod'

export const httpVariables = {
  HTTP_KEEP_ALIVE: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, 'must be a number of seconds from 1 to 9999')
    .transform(Number)
    .default(65),
}

const variables = z.object(httpVariables)

export interface HttpConfig {
  /**
   * Keep-alive of idle connections in seconds. Longer than that of the load balancer, so that a connection is never
   * closed while being reused.
   */
  readonly keepAliveSeconds: number
}

export function readHttp({ HTTP_KEEP_ALIVE }: z.output<typeof variables>): HttpConfig {
  return { keepAliveSeconds: HTTP_KEEP_ALIVE }
}
