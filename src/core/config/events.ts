/** Configuration of events and webhooks. */
import { z } from 'zod'

export const eventVariables = {
  EVENT_DAYS: z
    .string()
    .regex(/^([7-9]|[1-9]\d{1,3})$/, 'must be a number of days from 7 to 9999')
    .transform(Number)
    .default(90),
}

const variables = z.object(eventVariables)

export interface EventConfig {
  /** Days for which events and webhook deliveries are kept. */
  readonly eventDays: number
}

export function readEvents({ EVENT_DAYS }: z.output<typeof variables>): EventConfig {
  return { eventDays: EVENT_DAYS }
}
