/** Requests one-time codes, after validating the address in the browser. */
import { type Answer, ask } from './api.ts'
import { readField } from './elements.ts'

/** @throws Error when the address does not fit the channel. */
export async function askForCode(path: string, form: HTMLFormElement): Promise<Answer> {
  const [channel, destination] = [readField(form, 'channel'), readField(form, 'destination')]
  const field = form.querySelector<HTMLInputElement>('input[name="destination"]')
  const trouble = addressError(
    channel,
    destination,
    form.querySelectorAll('input[name="channel"]').length > 1,
  )
  field?.setAttribute('aria-invalid', String(trouble !== null))
  if (trouble !== null) {
    field?.focus()
    throw new Error(trouble)
  }
  return ask('POST', path, { channel, destination })
}

/** Returns what is wrong with an address for a channel, or null. */
function addressError(channel: string, destination: string, hasChoice: boolean): string | null {
  const isMail = destination.includes('@')
  const isPhone = /^\+?[\d\s()./-]{5,}$/.test(destination)
  if (channel === 'email' && isPhone && hasChoice)
    return 'This looks like a phone number. Choose “Phone”, or type an e-mail address.'
  if (channel === 'email' && !isMail)
    return 'This is not an e-mail address. Type one such as ada@example.com.'
  if (channel === 'sms' && isMail)
    return hasChoice
      ? 'This looks like an e-mail address. Choose “E-mail”, or type a phone number.'
      : 'This looks like an e-mail address. Type a phone number.'
  if (channel === 'sms' && !(isPhone && destination.startsWith('+')))
    return 'Type the phone number with its country code, such as +49 30 901820.'
  return null
}
