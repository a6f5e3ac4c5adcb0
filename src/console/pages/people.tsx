/** People of the account: who they are, what they may do, open invitations, and how many must agree to a payment. */
import { useState } from 'preact/hooks'
import { useLocation } from 'wouter-preact'
import type { Invitation, OwnerCap, Person } from '../../client/operations.ts'
import { ActionButton, Dialog, DialogButtons, Field, MoneyInput } from '../components/controls.tsx'
import { Chip } from '../components/marks.tsx'
import { Empty, toast } from '../components/messages.tsx'
import { NotReady } from '../components/not-ready.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { session } from '../data/account.ts'
import { bursar, leaveSignedOut, withProof } from '../data/gateway.ts'
import { ownerCap, people } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatUsd, isAmount } from '../words/money.ts'
import { chooseHue, count, extractInitials } from '../words/names.ts'
import { formatDay } from '../words/time.ts'

type Role = Person['role']

const roles: Readonly<Record<Role, readonly [name: string, powers: string]>> = {
  owner: ['Owner', 'does everything'],
  approver: ['Approver', 'reads everything, and decides on approvals'],
  viewer: ['Viewer', 'reads everything'],
  accountant: ['Accountant', 'reads money and statements'],
}
const roleNames: readonly Role[] = ['owner', 'approver', 'viewer', 'accountant']

type Open =
  | { readonly kind: 'invite' | 'join' | 'quorum' }
  | { readonly kind: 'role' | 'remove'; readonly person: Person }
  | null

export function PeoplePage() {
  const [path] = useLocation()
  const state = useResource(people)
  const loaded = loadedValue(state)
  const you = loadedValue(useResource(session))
  const [open, show] = useState<Open>(path === '/people/join' ? { kind: 'join' } : null)
  const close = () => show(null)
  const isOwner = you?.role === 'owner'
  const all = loaded?.people ?? []
  return (
    <>
      <PageHead
        title="People"
        actions={
          isOwner ? (
            <button class="btn btn--primary" type="button" onClick={() => show({ kind: 'invite' })}>
              Invite a person
            </button>
          ) : undefined
        }
      >
        Who shares this account, each with their own sign-in. Agents are no people.
      </PageHead>
      <NotReady state={state} subject="The list of people" retry={people.reload} />
      {all.length > 0 && (
        <Panel>
          <ul class="rows">
            {all.map((person) => (
              <PersonRow
                key={person.id}
                person={person}
                isOwner={isOwner}
                isAlone={all.length === 1}
                change={() => show({ kind: 'role', person })}
                remove={() => show({ kind: 'remove', person })}
              />
            ))}
          </ul>
          {all.length === 1 && loaded?.invitations.length === 0 && (
            <Empty icon="person" title="Only you so far">
              Invite somebody to see the account, to decide on approvals, or to own it with you.{' '}
              <button class="linkbtn" type="button" onClick={() => show({ kind: 'join' })}>
                You were invited yourself?
              </button>
            </Empty>
          )}
        </Panel>
      )}
      {loaded !== undefined && loaded.invitations.length > 0 && (
        <Panel title="Invited">
          <ul class="rows">
            {loaded.invitations.map((invitation) => (
              <InvitationRow key={invitation.id} invitation={invitation} />
            ))}
          </ul>
        </Panel>
      )}
      {you !== undefined && you.role !== 'accountant' && all.length > 0 && (
        <QuorumPanel isOwner={isOwner} change={() => show({ kind: 'quorum' })} />
      )}
      {open?.kind === 'invite' && <InviteDialog close={close} />}
      {open?.kind === 'join' && <JoinDialog close={close} />}
      {open?.kind === 'role' && <RoleDialog person={open.person} close={close} />}
      {open?.kind === 'remove' && <RemoveDialog person={open.person} close={close} />}
      {open?.kind === 'quorum' && <QuorumLoaded people={all} close={close} />}
    </>
  )
}

function PersonRow({
  person,
  isOwner,
  isAlone,
  change,
  remove,
}: {
  readonly person: Person
  readonly isOwner: boolean
  readonly isAlone: boolean
  readonly change: () => void
  readonly remove: () => void
}) {
  const { id, displayName, email, role, isYou, locked, mfaEnrolled, joinedAt } = person
  const [name] = roles[role]
  const facts = [
    ...(email === null ? [] : [email]),
    `since ${formatDay(joinedAt)}`,
    ...(mfaEnrolled ? [] : ['no second factor']),
  ]
  return (
    <li class="item item--tools">
      <span class={`glyph glyph--round glyph--${chooseHue(id)}`} aria-hidden="true">
        {extractInitials(displayName)}
      </span>
      <span class="item__main">
        <span class="item__name">
          <span class="trim">
            <Untrusted>{displayName}</Untrusted>
            {isYou && <span class="faint"> (you)</span>}
          </span>
          <Chip kind={role === 'owner' ? 'info' : 'plain'}>{name}</Chip>
          {locked && (
            <Chip kind="bad" icon="lock">
              Locked out
            </Chip>
          )}
        </span>
        <span class="item__sub wrap">
          <Untrusted>{facts.join(' · ')}</Untrusted>
        </span>
      </span>
      {!isAlone && (
        <span class="row">
          {isOwner && (
            <button class="btn btn--sm" type="button" aria-label={`Change ${displayName}`} onClick={change}>
              Change
            </button>
          )}
          {(isOwner || isYou) && (
            <button
              class="btn btn--sm btn--stopline"
              type="button"
              aria-label={isYou ? 'Leave the account' : `Remove ${displayName}`}
              onClick={remove}
            >
              {isYou ? 'Leave' : 'Remove'}
            </button>
          )}
        </span>
      )}
    </li>
  )
}

function InvitationRow({ invitation }: { readonly invitation: Invitation }) {
  const { id, email, role, expiresAt } = invitation
  const cancel = async () => {
    await bursar.people.invitations.cancel({ id })
    await people.reload()
    toast('The invitation is canceled.')
  }
  return (
    <li class="item item--tools">
      <span class="glyph glyph--round" aria-hidden="true">
        {extractInitials(email)}
      </span>
      <span class="item__main">
        <span class="item__name">
          <span class="trim">
            <Untrusted>{email}</Untrusted>
          </span>
          <Chip kind="plain">{roles[role][0]}</Chip>
        </span>
        <span class="item__sub wrap">Has not accepted yet. Valid until {formatDay(expiresAt)}.</span>
      </span>
      <ActionButton size="sm" run={cancel} busy="Canceling" label={`Cancel the invitation of ${email}`}>
        Cancel
      </ActionButton>
    </li>
  )
}

function RoleField({ role, choose }: { readonly role: Role; readonly choose: (role: Role) => void }) {
  const [name, powers] = roles[role]
  return (
    <Field label="Role" of="role" hint={`${name}: ${powers}.`}>
      {(props) => (
        <select
          class="input"
          value={role}
          onChange={(event) => choose(roleNames.find((one) => one === event.currentTarget.value) ?? 'viewer')}
          {...props}
        >
          {roleNames.map((one) => (
            <option key={one} value={one}>
              {roles[one][0]}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

function InviteDialog({ close }: { readonly close: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('approver')
  const invite = async () => {
    await withProof(() => bursar.people.invitations.create({ email: email.trim(), role }))
    await people.reload()
    close()
    toast('The invitation is mailed.')
  }
  return (
    <Dialog title="Invite a person" close={close}>
      <Field
        label="E-mail"
        of="email"
        hint="Only who signs in with this address can accept, within seven days."
      >
        {(props) => (
          <input
            class="input"
            type="email"
            autoComplete="off"
            autofocus
            value={email}
            onInput={(event) => setEmail(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <RoleField role={role} choose={setRole} />
      {role === 'owner' && <p class="banner banner--warn">An owner can spend everything, and remove you.</p>}
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={invite} busy="Sending" disabled={!email.includes('@')}>
          Invite
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Accepts an invitation. The link of the mail brings the code behind its #, which no server sees. */
function JoinDialog({ close }: { readonly close: () => void }) {
  const [code, setCode] = useState(location.hash.slice(1))
  const join = async () => {
    await bursar.people.invitations.accept({ code: code.trim() })
    // Everything that the page shows was of the other account.
    location.assign('/')
  }
  return (
    <Dialog title="Join an account" close={close}>
      <p>
        You share that account from then on, with all your sessions. Sign in with the address that the
        invitation was mailed to.
      </p>
      <Field label="Code of the mail" of="code">
        {(props) => (
          <input
            class="input mono"
            autoComplete="off"
            spellcheck={false}
            value={code}
            onInput={(event) => setCode(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={join} busy="Joining" disabled={code.trim() === ''}>
          Join
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function RoleDialog({ person, close }: { readonly person: Person; readonly close: () => void }) {
  const [role, setRole] = useState<Role>(person.role)
  const save = async () => {
    await withProof(() => bursar.people.update({ id: person.id, role }))
    await Promise.all([people.reload(), session.reload()])
    close()
    toast('The role is changed.')
  }
  return (
    <Dialog
      title={
        <>
          Role of <Untrusted>{person.displayName}</Untrusted>
        </>
      }
      close={close}
    >
      <RoleField role={role} choose={setRole} />
      <p class="small soft">It applies to the next thing that they do.</p>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={save} busy="Saving" disabled={role === person.role}>
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function RemoveDialog({ person, close }: { readonly person: Person; readonly close: () => void }) {
  const { id, displayName, isYou } = person
  const remove = async () => {
    const { keysPaused } = await withProof(() => bursar.people.remove({ id }))
    if (isYou) return leaveSignedOut()
    await people.reload()
    close()
    toast(
      keysPaused === 0
        ? 'The person is removed.'
        : `The person is removed. ${count(keysPaused, 'key')} of theirs ${keysPaused === 1 ? 'is' : 'are'} paused: see Agents.`,
    )
  }
  return (
    <Dialog
      title={
        isYou ? (
          'Leave this account?'
        ) : (
          <>
            Remove <Untrusted>{displayName}</Untrusted>?
          </>
        )
      }
      close={close}
    >
      <p>
        {isYou
          ? 'You are signed out everywhere. When you sign in again, you have an account of your own.'
          : 'They are signed out everywhere at once, and what they agreed to of open requests no longer counts.'}{' '}
        Programs that {isYou ? 'you' : 'they'} allowed lose access, and keys that {isYou ? 'you' : 'they'}{' '}
        made are paused.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" run={remove} busy={isYou ? 'Leaving' : 'Removing'}>
          {isYou ? 'Leave' : 'Remove'}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function QuorumPanel({ isOwner, change }: { readonly isOwner: boolean; readonly change: () => void }) {
  const cap = loadedValue(useResource(ownerCap))
  if (cap === undefined) return null
  return (
    <Panel
      title="Large payments"
      more={
        isOwner ? (
          <button class="btn btn--sm" type="button" onClick={change}>
            {cap.approvals.length === 0 ? 'Require others' : 'Change'}
          </button>
        ) : undefined
      }
    >
      <div class="panel__body stack" id="quorum">
        {cap.approvals.length === 0 ? (
          <p class="soft">No payment needs more than one person.</p>
        ) : (
          cap.approvals.map(({ above, count: needed }) => (
            <p key={above}>
              Above <b class="num">{formatUsd(above)}</b>, {count(needed, 'person', 'people')} must agree.
            </p>
          ))
        )}
        <p class="small faint">
          Agents’ payments and your own. Nobody agrees to what they ask for themselves.
        </p>
      </div>
    </Panel>
  )
}

function QuorumLoaded({
  people: all,
  close,
}: {
  readonly people: readonly Person[]
  readonly close: () => void
}) {
  const cap = loadedValue(useResource(ownerCap))
  return cap === undefined ? null : <QuorumDialog cap={cap} people={all} close={close} />
}

function QuorumDialog({
  cap,
  people: all,
  close,
}: {
  readonly cap: OwnerCap
  readonly people: readonly Person[]
  readonly close: () => void
}) {
  const deciding = all.filter(({ role }) => role === 'owner' || role === 'approver').length
  const [steps, set] = useState(
    cap.approvals.length === 0
      ? [{ above: '', needed: String(Math.min(2, deciding)) }]
      : cap.approvals.map(({ above, count: needed }) => ({ above, needed: String(needed) })),
  )
  const put = (position: number, changed: Partial<(typeof steps)[number]>) =>
    set(steps.map((step, at) => (at === position ? { ...step, ...changed } : step)))
  const isWrong = (above: string) => above !== '' && !isAmount(above)
  const save = async () => {
    const approvals = steps
      .filter(({ above }) => above !== '')
      .map(({ above, needed }) => ({ above, count: Number(needed) }))
    ownerCap.put(await withProof(() => bursar.agents.policy.set({ approvals })))
    close()
    toast(approvals.length === 0 ? 'No payment needs others.' : 'Large payments need others now.')
  }
  return (
    <Dialog title="Large payments" close={close}>
      <p>Above an amount, so many different owners or approvers must agree.</p>
      {steps.map(({ above, needed }, position) => (
        // Steps have no names: their place is what they are.
        <div class="formgrid" key={position}>
          <Field
            label={
              <>
                Above <span class="faint">(empty: none)</span>
              </>
            }
            error={isWrong(above) ? 'An amount such as 250.00, or nothing.' : undefined}
          >
            {(props) => (
              <MoneyInput
                value={above}
                onInput={(event) => put(position, { above: event.currentTarget.value.trim() })}
                {...props}
              />
            )}
          </Field>
          <Field label="People who agree">
            {(props) => (
              <select
                class="input"
                value={needed}
                onChange={(event) => put(position, { needed: event.currentTarget.value })}
                {...props}
              >
                {Array.from({ length: Math.max(deciding, Number(needed)) }, (_, index) =>
                  String(index + 1),
                ).map((number) => (
                  <option key={number} value={number}>
                    {number}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
      ))}
      {steps.length < 5 && (
        <button
          class="linkbtn"
          type="button"
          onClick={() => set([...steps, { above: '', needed: String(deciding) }])}
        >
          Add another amount
        </button>
      )}
      <p class="small soft">
        {count(deciding, 'person', 'people')} could agree now; for a payment of their own, one fewer.
      </p>
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={save}
          busy="Saving"
          disabled={steps.some(({ above }) => isWrong(above))}
        >
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
