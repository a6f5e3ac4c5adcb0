/** The reference: a page per tag, and a page per operation with samples and a request to try. */
import { raw } from 'hono/html'
import { failures } from '../../../../core/failures/failure.ts'
import { Layout, type Site } from './layout.tsx'
import { renderInline } from './markdown.ts'
import type { Member, Operation, Tag } from './operations.ts'
import { buildSamples } from './samples.ts'

export function TagPage({ site, tag }: { readonly site: Site; readonly tag: Tag }) {
  return (
    <Layout site={site} title={tag.name} href={`/docs/reference/${tag.slug}`}>
      <p class="eyebrow">Reference</p>
      <h1>{tag.name}</h1>
      <p class="lead">{tag.description}</p>
      <ul class="operations">
        {tag.operations.map((operation) => (
          <li>
            <a href={operation.href}>
              <Route operation={operation} />
            </a>
            <p>{raw(renderInline(operation.summary))}</p>
          </li>
        ))}
      </ul>
    </Layout>
  )
}

export function OperationPage({ site, operation }: { readonly site: Site; readonly operation: Operation }) {
  const { caller, parameters, body, answer, failures: codes } = operation
  const canTry = site.isSandbox && caller !== 'provider' && caller !== 'admin'
  return (
    <Layout site={site} title={operation.id} href={operation.href} isWide={true}>
      <div class="about">
        <p class="eyebrow">
          <a href={`/docs/reference/${operation.href.split('/')[3]}`}>{operation.tag}</a>
        </p>
        <h1>
          <span class="hidden">{operation.id}: </span>
          <Route operation={operation} />
        </h1>
        <p class="lead">{raw(renderInline(operation.summary))}</p>
        <Callers operation={operation} />
        <Description text={operation.description} />
        {parameters.length === 0 ? (
          ''
        ) : (
          <>
            <h2 id="parameters">Parameters</h2>
            <Members members={parameters.map((one) => ({ ...one, type: `${one.type}, in ${one.in}` }))} />
          </>
        )}
        {body.length === 0 ? (
          ''
        ) : (
          <>
            <h2 id="body">Body</h2>
            <Members members={body} />
          </>
        )}
        <h2 id="answer">Answer</h2>
        <details>
          <summary>200, {answer.length === 1 ? '1 member' : `${answer.length} members`}</summary>
          <Members members={answer} />
        </details>
        <pre tabindex={0}>{JSON.stringify(operation.answerExample, null, 2)}</pre>
        <h2 id="failures">Failures</h2>
        <ul class="failures">
          {codes.map((code) => (
            <li>
              <span class="status">{failures[code].status}</span>
              <a href={`/errors/${code}`}>
                <code>{code}</code>
              </a>
              <span>{failures[code].title}</span>
            </li>
          ))}
        </ul>
        <p class="quiet">
          And those of any request, such as <a href="/errors/unauthenticated">unauthenticated</a> and{' '}
          <a href="/errors/rate_limited">rate_limited</a>: see <a href="/errors">all errors</a>.
        </p>
      </div>
      <div class="beside">
        <Samples operation={operation} site={site} />
        {canTry ? <Try operation={operation} /> : ''}
      </div>
    </Layout>
  )
}

/** The description, with the sentences about one failure or state each as a list. */
function Description({ text }: { readonly text: string }) {
  const [about = '', ...cases] = text.split(/(?<=\.) (?=`\w+`:)/)
  return (
    <>
      {about === '' ? '' : <p>{raw(renderInline(about))}</p>}
      {cases.length === 0 ? (
        ''
      ) : (
        <ul>
          {cases.map((one) => (
            <li>{raw(renderInline(one))}</li>
          ))}
        </ul>
      )}
    </>
  )
}

function Route({ operation: { method, path } }: { readonly operation: Operation }) {
  // Long paths break after their slashes.
  const parts = path.split(/(?<=\/)/)
  return (
    <code class="route">
      <span class={`method ${method.toLowerCase()}`}>{method}</span>{' '}
      <span class="path">
        {parts.map((part) => (
          <>
            {part}
            <wbr />
          </>
        ))}
      </span>
    </code>
  )
}

const callers = {
  public: 'Anyone, without a credential',
  person: 'A person with a session',
  admin: 'An administrator with a session',
  account: 'A session, or a key',
  provider: 'The provider, with its signature',
} as const

function Callers({ operation }: { readonly operation: Operation }) {
  const { caller, scopes, secondFactor, isOverMcp, isRepeatable, id } = operation
  return (
    <dl class="facts">
      <dt>Caller</dt>
      <dd>
        {callers[caller]}
        {scopes.length === 0 ? '' : ' with '}
        {scopes.map((scope, index) => (
          <>
            {index === 0 ? '' : ' and '}
            <code>{scope}</code>
          </>
        ))}
        {secondFactor === 'never' ? (
          ''
        ) : (
          <>
            {secondFactor === 'always' ? ', after a recent ' : '; depending on the input, after a recent '}
            <a href="/errors/step_up_required">second factor</a>
          </>
        )}
      </dd>
      {isOverMcp ? (
        <>
          <dt>MCP tool</dt>
          <dd>
            <code>{id.replaceAll('.', '_')}</code>
          </dd>
        </>
      ) : (
        ''
      )}
      {isRepeatable ? (
        <>
          <dt>Repeats</dt>
          <dd>
            With the same <code>Idempotency-Key</code> and body, once; kept for 24 hours
          </dd>
        </>
      ) : (
        ''
      )}
    </dl>
  )
}

function Members({ members }: { readonly members: readonly Member[] }) {
  return (
    <ul class="members">
      {members.map(({ name, depth, type, isRequired, description }) => (
        <li class={`depth-${depth}`}>
          <p>
            <code>{name}</code> <span class="type">{type}</span>
            {isRequired ? <span class="required"> required</span> : ''}
          </p>
          {description === '' ? '' : <p>{raw(renderInline(description))}</p>}
        </li>
      ))}
    </ul>
  )
}

/** Tabs without a script: the chosen language is a radio button. */
function Samples({ operation, site }: { readonly operation: Operation; readonly site: Site }) {
  const samples = buildSamples(operation, site)
  return (
    <section class="samples" aria-labelledby="samples">
      <h2 id="samples">Request</h2>
      <fieldset>
        <legend class="hidden">Language</legend>
        {samples.map(({ language, title }, index) => (
          <>
            <input
              type="radio"
              name="language"
              id={`language-${language}`}
              value={language}
              checked={index === 0}
            />
            <label for={`language-${language}`}>{title}</label>
          </>
        ))}
      </fieldset>
      {samples.map(({ language, text }) => (
        <div class={`sample ${language}`}>
          <pre tabindex={0}>
            <code>{text}</code>
          </pre>
        </div>
      ))}
    </section>
  )
}

/** The request as a form; the script fills in the credential and sends it. */
function Try({ operation }: { readonly operation: Operation }) {
  const { method, path, caller, parameters, bodyExample, isRepeatable } = operation
  return (
    <section class="try" aria-labelledby="try">
      <h2 id="try">Try it</h2>
      <form
        id="request"
        data-method={method}
        data-path={path}
        data-caller={caller}
        data-repeatable={isRepeatable ? '' : undefined}
      >
        {caller === 'public' ? (
          ''
        ) : (
          <p>
            <label for="credential">{caller === 'account' ? 'Key' : 'Session'}</label>
            <input
              id="credential"
              name="credential"
              autocomplete="off"
              spellcheck={false}
              placeholder={caller === 'account' ? '' : 'your session or a new guest’s, if empty'}
            />
          </p>
        )}
        {parameters.map(({ name, in: where, isRequired, example }) => (
          <p>
            <label for={`input-${name}`}>{name}</label>
            <input
              id={`input-${name}`}
              data-name={name}
              data-in={where}
              value={example}
              required={isRequired}
              autocomplete="off"
              spellcheck={false}
            />
          </p>
        ))}
        {bodyExample === undefined ? (
          ''
        ) : (
          <p>
            <label for="body-input">Body (JSON)</label>
            <textarea id="body-input" name="body" rows={bodyRows(bodyExample)} spellcheck={false}>
              {JSON.stringify(bodyExample, null, 2)}
            </textarea>
          </p>
        )}
        <button class="primary" type="submit">
          Send
        </button>
        <noscript>Sending requires JavaScript; the samples do not.</noscript>
      </form>
      <div id="response" hidden>
        <p role="status" />
        <pre tabindex={0} />
      </div>
    </section>
  )
}

function bodyRows(example: unknown): number {
  return Math.min(JSON.stringify(example, null, 2).split('\n').length + 1, 16)
}
