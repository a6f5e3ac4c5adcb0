/**
 * SMS through Twilio's Programmable Messaging.
 * @see https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource
 */
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider, parseRetryAfter } from '../http-client.ts'
import { messageNotSent } from './not-sent.ts'
import type { Messages } from './port.ts'

/** Sending account. @property from a number of the account in E.164, or a sender name. */
export interface TwilioOptions {
  readonly url: string
  readonly accountSid: string
  readonly authToken: string
  readonly from: string
  readonly log: Log
  /** Time limit for the whole answer; a person is waiting. */
  readonly timeoutMs?: number
}

const created = z.object({ sid: z.string().min(1), status: z.string() })
const refused = z.object({ code: z.int().nullish() })

/** States of a message that Twilio accepted and failed immediately. */
const failedStates: ReadonlySet<string> = new Set(['failed', 'undelivered', 'canceled'])

export function createTwilioMessages(options: TwilioOptions): Messages {
  const { url, accountSid, authToken, from, log, timeoutMs = 5000 } = options
  const endpoint = `${url.replace(/\/+$/, '')}/2010-04-01/Accounts/${accountSid}/Messages.json`
  const authorization = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`
  return {
    channels: ['sms'],
    send: async ({ destination, text }) => {
      try {
        const response = await callProvider({
          url: endpoint,
          method: 'POST',
          headers: { authorization, accept: 'application/json' },
          body: new URLSearchParams({ To: destination, From: from, Body: text }),
          timeoutMs,
        })
        const answer = jsonOr(response.text)
        if (!response.ok)
          throw messageNotSent(
            log,
            'twilio',
            `${response.status} ${refused.safeParse(answer).data?.code ?? ''}`.trim(),
            parseRetryAfter(response),
          )
        const { status } = created.parse(answer)
        if (failedStates.has(status)) throw messageNotSent(log, 'twilio', status)
      } catch (error) {
        if (error instanceof Failure) throw error
        throw messageNotSent(log, 'twilio', error instanceof Error ? error.name : 'unknown')
      }
    },
  }
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
