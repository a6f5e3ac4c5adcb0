/** Form fields for requesting and entering one-time codes. */
import type { Channel } from '../../../providers/messages/port.ts'

const choices: Readonly<Record<Channel, string>> = { email: 'E-mail', sms: 'Phone' }
const labels: Readonly<Record<Channel, string>> = { email: 'E-mail address', sms: 'Phone number' }
const types: Readonly<Record<Channel, string>> = { email: 'email', sms: 'tel' }

/**
 * Address fields for the channels that the deployment supports. @param id of the input; related ids derive from it.
 * @param whose label prefix on pages with several addresses.
 */
export function DestinationFields({
  channels,
  id,
  whose = '',
}: {
  readonly channels: readonly Channel[]
  readonly id: string
  readonly whose?: string
}) {
  const [only, another] = channels
  const isChoice = another !== undefined
  const label = isChoice ? 'E-mail address or phone number' : labels[only ?? 'email']
  const hasHint = channels.includes('sms')
  return (
    <>
      {isChoice ? <ChannelChoice channels={channels} /> : <input type="hidden" name="channel" value={only} />}
      <label for={id}>
        {whose === '' ? label : `${whose} ${label.charAt(0).toLowerCase()}${label.slice(1)}`}
      </label>
      <input
        id={id}
        name="destination"
        type={isChoice ? 'text' : types[only ?? 'email']}
        autocomplete={isChoice ? 'username' : only === 'sms' ? 'tel' : 'email'}
        maxlength={254}
        aria-describedby={hasHint ? `${id}-hint` : undefined}
        required
      />
      {hasHint && (
        <p id={`${id}-hint`} class="hint">
          Include the country code, such as +49 30 901820. Someone who takes over a number can read its
          messages: a passkey is safer.
        </p>
      )}
    </>
  )
}

function ChannelChoice({ channels }: { readonly channels: readonly Channel[] }) {
  return (
    <fieldset>
      <legend>Send it by</legend>
      {channels.map((channel, at) => (
        <label class="choice">
          <input type="radio" name="channel" value={channel} checked={at === 0} /> {choices[channel]}
        </label>
      ))}
    </fieldset>
  )
}

export function CodeField({
  id,
  label,
  isSandbox,
}: {
  readonly id: string
  readonly label: string
  readonly isSandbox: boolean
}) {
  return (
    <>
      <label for={id}>{label}</label>
      <SixDigits id={id} />
      {isSandbox && (
        <p class="hint">
          The sandbox sends no messages. <a href="/sandbox/outbox">The outbox shows the code.</a>
        </p>
      )}
    </>
  )
}

/** Input of a six-digit code. */
export function SixDigits({ id }: { readonly id: string }) {
  return (
    <input
      id={id}
      name="code"
      inputmode="numeric"
      autocomplete="one-time-code"
      pattern="[0-9]{6}"
      maxlength={6}
      required
    />
  )
}
