/** Says that the session ended, on a page that keeps what was entered. */
import { useEffect } from 'preact/hooks'
import { account, session } from '../data/account.ts'
import { goToSignIn, hasEnded } from '../data/gateway.ts'
import { Dialog, DialogButtons } from './controls.tsx'
import { Icon } from './icon.tsx'
import { toast } from './messages.tsx'

/** Escape does not lose what was entered. */
const stay = () => {}

/** Pause between looks whether the person has signed in again in another tab. */
const LOOK_MS = 2_000

export function EndedDialog() {
  const isEnded = hasEnded.value
  useEffect(() => {
    if (!isEnded) return
    const look = async () => {
      await session.reload()
      const { value } = session.state
      if (value.status !== 'ready' || value.error !== null) return
      hasEnded.value = false
      toast('You are signed in again. Nothing was sent yet: press the button once more.')
    }
    const timer = setInterval(() => void look(), LOOK_MS)
    return () => clearInterval(timer)
  }, [isEnded])
  if (!isEnded) return null
  const isGuest = account.value?.guest === true
  return (
    <Dialog title="Your session ended" close={stay}>
      <p>
        {isGuest
          ? 'A guest cannot sign in again. What you entered is still here, to be copied.'
          : 'What you entered is still here, and nothing was sent. Sign in again in another tab, then come back to this one.'}
      </p>
      <DialogButtons close={goToSignIn} leave="Leave this page">
        {!isGuest && (
          <a class="btn btn--primary" href="/sign-in?next=%2F" target="_blank" rel="noopener">
            Sign in in another tab
            <Icon name="external" small />
          </a>
        )}
      </DialogButtons>
    </Dialog>
  )
}
